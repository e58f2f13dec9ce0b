"""Find the nouns of a caption with a spaCy pipeline."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.grounding.class_words import COMPOUND_CLASSES, spellings_of
from smart_caption_ros.grounding.errors import CoverageError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Token

_NOUN_TAGS = ("NOUN", "PROPN")


@contextmanager
def _without_torch() -> Iterator[None]:
    """Let imports fail to find torch, unless it is loaded already.

    spaCy imports torch wherever it is installed, which takes seconds and 190 MB; the pipeline of this package does not
    use it, another one may.
    """
    if "torch" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment] # makes `import torch` raise ModuleNotFoundError
    try:
        yield
    finally:
        del sys.modules["torch"]


def default_pipeline_path() -> Path:
    """Return the folder of the pipeline in the package, made by `recipes/lexicon/noun_tagger.py`."""
    return Path(__file__).resolve().parent / "data" / "caption_nouns"


@dataclass(frozen=True)
class Noun:
    """A noun of a caption, or a class name of several words."""

    text: str
    """As in the caption."""
    lemma: str
    """Lower-case singular; the class name for a compound."""
    word_index: int
    """Index of its first word; words are separated by spaces."""
    start: int
    """Offset of its first character in the caption."""
    end: int
    """Offset after its last character."""


class NounFinder:
    """Finds nouns; made by :meth:`load`. It is not thread-safe."""

    def __init__(self, nlp: Language, compounds: Iterable[str] = COMPOUND_CLASSES) -> None:
        self._nlp = nlp
        ways = spellings_of(normalise(name) for name in compounds)
        self._compounds = {tuple(way.split()): name for way, name in ways.items()}
        self._longest = max((len(way) for way in self._compounds), default=1)

    @classmethod
    def load(
        cls, pipeline: str | os.PathLike[str] | None = None, compounds: Iterable[str] = COMPOUND_CLASSES
    ) -> NounFinder:
        """Load a spaCy pipeline.

        Args:
            pipeline: name of an installed pipeline (``en_core_web_sm``) or its folder; the one in the package by
                default.
            compounds: class names; a name of several words counts as one noun.

        Raises:
            CoverageError: spaCy or the pipeline is missing, or the pipeline tags no nouns.
        """
        try:
            with _without_torch() if pipeline is None else nullcontext():
                import spacy
        except ImportError as error:
            raise CoverageError(f"noun coverage needs spaCy ({error}): pip install spacy") from error
        chosen = pipeline if isinstance(pipeline, str) else Path(pipeline or default_pipeline_path())
        try:
            # components that take time and do not tag nouns
            nlp = spacy.load(chosen, exclude=["ner", "parser", "senter"])
        except (OSError, ValueError) as error:
            first_line = str(error).strip().splitlines()[0]
            raise CoverageError(
                f"the spaCy pipeline {str(chosen)!r} cannot be loaded ({first_line}); install it "
                f"(python -m spacy download {Path(chosen).name}), or leave it out to use the one that ships"
            ) from None
        if not any(token.pos_ in _NOUN_TAGS and token.lemma_ for token in nlp("a dog on the grass")):
            raise CoverageError(
                f"the spaCy pipeline {str(chosen)!r} finds no nouns: it needs a tagger and a lemmatiser"
            )
        return cls(nlp, compounds)

    @property
    def name(self) -> str:
        """Name and version of the pipeline."""
        meta = self._nlp.meta
        return f"{meta['lang']}_{meta['name']} {meta['version']}"

    def nouns(self, caption: str) -> tuple[Noun, ...]:
        """Find common and proper nouns, in the order of the caption, repeated ones included."""
        # Taggers take words in capitals for names.
        lowered = caption.lower()
        doc = self._nlp(lowered if caption.isupper() and len(lowered) == len(caption) else caption)
        tokens = list(doc)
        keys = [_key(token) for token in tokens]
        found: list[Noun] = []
        i = 0
        while i < len(tokens):
            length, name = self._compound_at(keys, i)
            if length:
                found.append(_noun(caption, tokens[i], tokens[i + length - 1], name))
            elif tokens[i].pos_ in _NOUN_TAGS and any(character.isalpha() for character in keys[i]):
                found.append(_noun(caption, tokens[i], tokens[i], normalise(keys[i])))
            i += length or 1
        return tuple(found)

    def singulars(self, words: Sequence[str]) -> list[str]:
        """Return the singular of each word, lower case, as :attr:`Noun.lemma` of a noun."""
        from spacy.tokens import Doc

        doc = Doc(self._nlp.vocab, words=list(words))
        for token in doc:
            token.pos_ = "NOUN"
        for name, component in self._nlp.pipeline:
            if name != "tagger":
                doc = component(doc)
        return [normalise(token.lemma_ or token.text) for token in doc]

    def _compound_at(self, keys: list[str], i: int) -> tuple[int, str]:
        for length in range(min(self._longest, len(keys) - i), 1, -1):
            name = self._compounds.get(tuple(keys[i : i + length]))
            if name is not None:
                return length, name
        return 0, ""


def _key(token: Token) -> str:
    return token.lemma_.lower() if token.pos_ in _NOUN_TAGS and token.lemma_ else token.lower_


def _noun(caption: str, first: Token, last: Token, lemma: str) -> Noun:
    start, end = first.idx, last.idx + len(last)
    before = caption[:start]
    word_index = len(before.split()) - (bool(before) and not before[-1].isspace())
    return Noun(caption[start:end], lemma, word_index, start, end)
