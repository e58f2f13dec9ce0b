"""Find the nouns of a caption with a spaCy pipeline."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from smart_caption_ros.detection.class_names import COCO_CLASSES, SPELLINGS, normalise
from smart_caption_ros.errors import CoverageError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Token

_PIPELINE = Path(__file__).resolve().parent / "data" / "caption_nouns"
"""The pipeline in the package, made by `recipes/lexicon` of commit 8c43a21."""
_NOUN_TAGS = ("NOUN", "PROPN")
_HYPHENS = ("-", "\u2010", "\u2011", "\u2013")
_DETERMINERS = ("of", "my", "your", "his", "her", "its", "our", "their")
"""Words, in addition to those tagged DET, after which the name of a colour names an object ("a slice of orange")."""
_COPULAS = ("be", "is", "are", "was", "were", "been", "being", "look", "looks", "turn", "turns", "turned")

_pipelines: WeakValueDictionary[str, Language] = WeakValueDictionary()
"""Pipelines in use by name or folder. ObjectsGuide and NounCoverage share one, because each takes 0.13 s and 10 MB."""


@contextmanager
def _light_imports() -> Iterator[None]:
    """Import spaCy in the block without torch and without its command line, unless these are loaded already.

    spaCy imports torch if it is installed, which takes seconds and 190 MB. The pipeline of this package does not use
    torch; another pipeline may. spaCy's command line takes 0.2 s and 18 MB.
    """
    cli, info = ModuleType("spacy.cli"), ModuleType("spacy.cli.info")
    info.info = _spacy_info  # type: ignore[attr-defined] # spaCy takes this one function from its command line
    hidden = {"torch": None, cli.__name__: cli, info.__name__: info}
    hidden = {name: module for name, module in hidden.items() if name not in sys.modules}
    sys.modules.update(hidden)  # type: ignore[arg-type] # None makes `import torch` raise ModuleNotFoundError
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def _spacy_info(*arguments: Any, **settings: Any) -> Any:
    from spacy.cli.info import info

    return info(*arguments, **settings)


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
    end: int
    """Offset after its last character."""


class NounFinder:
    """Finds nouns; created by :meth:`load`. Not thread-safe, nor are two finders that share a pipeline."""

    def __init__(self, nlp: Language, class_names: Iterable[str] = COCO_CLASSES) -> None:
        self._nlp = nlp
        names = {normalise(name) for name in class_names} - {""}
        spellings = {name: name for name in names} | {way: name for way, name in SPELLINGS.items() if name in names}
        self._names = {spelling.replace(" ", ""): name for spelling, name in spellings.items()}
        """Names of classes by their spellings without spaces."""
        self._longest = max((len(spelling.split()) for spelling in spellings), default=0) + 1
        """Maximum number of words of a class; one more, for "snow board"."""

    @classmethod
    def load(
        cls, pipeline: str | os.PathLike[str] | None = None, class_names: Iterable[str] = COCO_CLASSES
    ) -> NounFinder:
        """Load a spaCy pipeline.

        Args:
            pipeline: name of an installed pipeline (``en_core_web_sm``) or its folder; the one in the package by
                default.
            class_names: a name counts as one noun in all its spellings (hot dog, hot-dog, hotdog); a name that the
                tagger takes for an adjective (an orange) counts where it stands for an object.

        Raises:
            CoverageError: spaCy or the pipeline is missing, or the pipeline tags no nouns.
        """
        try:
            with _light_imports() if pipeline is None else nullcontext():
                import spacy
        except ImportError as error:
            raise CoverageError(f"noun coverage needs spaCy ({error}): pip install spacy") from error
        chosen = pipeline if isinstance(pipeline, str) else Path(pipeline or _PIPELINE)
        if (loaded := _pipelines.get(str(chosen))) is not None:
            return cls(loaded, class_names)
        try:
            # Without components that take time and do not tag nouns.
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
        _pipelines[str(chosen)] = nlp
        return cls(nlp, class_names)

    @property
    def name(self) -> str:
        """Name and version of the pipeline."""
        meta = self._nlp.meta
        return f"{meta['lang']}_{meta['name']} {meta['version']}"

    def nouns(self, caption: str) -> tuple[Noun, ...]:
        """Find common and proper nouns, in the order of the caption, repeated ones included."""
        # Taggers take words in capital letters for names.
        lowered = caption.lower()
        doc = self._nlp(lowered if caption.isupper() and len(lowered) == len(caption) else caption)
        tokens = list(doc)
        keys = [_key(token) for token in tokens]
        nouns: list[Noun] = []
        i = 0
        while i < len(tokens):
            length, name = self._class_at(keys, i)
            is_noun = tokens[i].pos_ in _NOUN_TAGS or (keys[i] in self._names and _is_head(tokens, i))
            if length:
                nouns.append(_noun(caption, tokens[i], tokens[i + length - 1], name))
            elif is_noun and any(character.isalpha() for character in keys[i]):
                nouns.append(_noun(caption, tokens[i], tokens[i], normalise(keys[i])))
            i += length or 1
        return tuple(nouns)

    def singulars(self, words: Sequence[str]) -> list[str]:
        """Return the singular of each word, lower case, as in :attr:`Noun.lemma`."""
        from spacy.tokens import Doc

        doc = Doc(self._nlp.vocab, words=list(words))
        for token in doc:
            token.pos_ = "NOUN"
        for name, component in self._nlp.pipeline:
            if name != "tagger":
                doc = component(doc)
        return [normalise(token.lemma_ or token.text) for token in doc]

    def _class_at(self, keys: list[str], i: int) -> tuple[int, str]:
        """Find a class that several tokens from the i-th on spell, or one token for a class of several words.

        Returns:
            The number of tokens, hyphens included, and the name; 0 and "" if there is none.
        """
        longest, spelt, words = (0, ""), "", 0
        for end in range(i, len(keys)):
            if keys[end] in _HYPHENS and spelt:
                continue
            spelt, words = spelt + keys[end], words + 1
            if words > self._longest:
                break
            name = self._names.get(spelt) or self._names.get(_singular(spelt), "")
            if name and (words > 1 or " " in name):
                longest = end - i + 1, name
        return longest


def _singular(word: str) -> str:
    """Return the singular of a regular plural, for words that the lemmatiser does not know (wineglasses)."""
    for ending in ("es", "s", "e"):  # "e": the lemmatiser makes "wineglasse" of "wineglasses"
        if len(word) > len(ending) + 2 and word.endswith(ending) and not word.endswith("ss"):
            return word[: -len(ending)]
    return word


def _is_head(tokens: list[Token], i: int) -> bool:
    """Return whether a word that is tagged as an adjective stands for an object: "an orange", not "an orange shirt"."""
    if tokens[i].pos_ not in ("ADJ", "VERB"):
        return False
    before = i - 1
    while before >= 0 and _modifies(tokens[before]):  # "a half eaten orange", "two orange"
        before -= 1
    has_number = any(token.pos_ == "NUM" for token in tokens[before + 1 : i])
    listed = before > 0 and before == i - 1 and _separates(tokens[before]) and tokens[before - 1].pos_ in _NOUN_TAGS
    determined = before < 0 or tokens[before].pos_ == "DET" or tokens[before].lower_ in _DETERMINERS
    if not (has_number or listed or determined):
        return False
    after, separated = i + 1, False
    while after < len(tokens) and (_separates(tokens[after]) or _modifies(tokens[after], after_noun=True)):
        separated = _separates(tokens[after])
        after += 1
    return separated or after == len(tokens) or tokens[after].pos_ not in _NOUN_TAGS


def _modifies(token: Token, after_noun: bool = False) -> bool:
    """Return whether a word may stand between a determiner and its noun ("a cut orange"), or with ``after_noun`` behind
    the noun, where a verb may not.
    """
    if token.pos_ == "ADJ" or token.text in _HYPHENS or token.lower_.endswith("ed"):
        return True
    return not after_noun and (
        token.pos_ in ("ADV", "NUM")
        or token.lower_ == "half"
        or (token.pos_ == "VERB" and token.lemma_ not in _COPULAS)
    )


def _separates(token: Token) -> bool:
    return token.pos_ in ("CCONJ", "PUNCT") and token.text not in _HYPHENS


def _key(token: Token) -> str:
    return token.lemma_.lower() if token.pos_ in _NOUN_TAGS and token.lemma_ else token.lower_


def _noun(caption: str, first: Token, last: Token, lemma: str) -> Noun:
    start, end = first.idx, last.idx + len(last)
    before = caption[:start]
    word_index = len(before.split()) - (bool(before) and not before[-1].isspace())
    return Noun(caption[start:end], lemma, word_index, start, end)
