"""Sentences with parts of speech: of Brown and CoNLL-2000, and of captions where the part of speech is certain.

The readers yield sentences as lists of (word, part of speech); an empty part of speech is unknown. The parts of speech
are those of Universal Dependencies, with proper names as NOUN, auxiliaries as VERB and subordinating conjunctions as
ADP: the tagger only has to tell nouns from other words.
"""

import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

Sentence = list[tuple[str, str]]
"""Words with their parts of speech."""

# Part of speech by the beginning of the corpus' tag.
_PENN = {
    "NN": "NOUN", "JJ": "ADJ", "RB": "ADV", "WRB": "ADV", "VB": "VERB", "MD": "VERB", "IN": "ADP", "RP": "ADP",
    "DT": "DET", "PDT": "DET", "WDT": "DET", "PRP$": "PRON", "PRP": "PRON", "WP": "PRON", "EX": "PRON", "CD": "NUM",
    "CC": "CCONJ", "TO": "PART", "POS": "PART", "UH": "X", "FW": "X", "SYM": "X",
}  # fmt: skip
_BROWN = {
    "nn": "NOUN", "np": "NOUN", "nr": "NOUN", "jj": "ADJ", "ap": "ADJ", "od": "ADJ", "rb": "ADV", "rn": "ADV",
    "ql": "ADV", "wql": "ADV", "wrb": "ADV", "vb": "VERB", "be": "VERB", "do": "VERB", "hv": "VERB", "md": "VERB",
    "in": "ADP", "cs": "ADP", "rp": "ADP", "at": "DET", "dt": "DET", "wdt": "DET", "ab": "DET", "pp": "PRON",
    "pn": "PRON", "wp": "PRON", "ex": "PRON", "cd": "NUM", "cc": "CCONJ", "to": "PART", "uh": "X", "fw-": "X",
}  # fmt: skip
_HELD_OUT_EVERY = 10


def read_brown(archive: Path, *, held_out: bool) -> Iterator[Sentence]:
    """Yield the sentences of every tenth file of the Brown corpus, or of all other files."""
    with zipfile.ZipFile(archive) as brown:
        names = sorted(name for name in brown.namelist() if re.fullmatch(r"brown/c[a-r]\d\d", name))
        for number, name in enumerate(names):
            if (number % _HELD_OUT_EVERY == 0) is held_out:
                for line in brown.read(name).decode("utf-8").splitlines():
                    if line.strip():
                        pairs = (token.rpartition("/") for token in line.split())
                        yield [(word, _part_of_speech(tag.lower(), _BROWN)) for word, _, tag in pairs]


def read_conll(archive: Path, part: str) -> Iterator[Sentence]:
    """Yield the sentences of CoNLL-2000 (Wall Street Journal), part ``train`` or ``test``."""
    with zipfile.ZipFile(archive) as conll:
        text = conll.read(f"conll2000/{part}.txt").decode("utf-8")
    for block in text.split("\n\n"):
        rows = [line.split() for line in block.splitlines()]
        if rows:
            yield [(word, _part_of_speech(tag, _PENN)) for word, tag, _ in rows]


def _part_of_speech(tag: str, table: Mapping[str, str]) -> str:
    """Look up the longest beginning of a tag that is in the table; tags without letters are punctuation."""
    for length in range(len(tag), 1, -1):
        if tag[:length] in table:
            return table[tag[:length]]
    return "" if any(character.isalpha() for character in tag) else "PUNCT"


_MIN_COUNT, _MIN_SHARE = 3, 0.97
"""Minimum number of occurrences of an unambiguous word with its part of speech, and their share of all occurrences."""


def unambiguous_words(sentences: Iterable[Sentence]) -> dict[str, str]:
    """Find lower-cased words that nearly always have the same part of speech in sentences."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for word, part in sentence:
            counts[word.lower()][part] += 1
    known: dict[str, str] = {}
    for word, parts in counts.items():
        ((part, count),) = parts.most_common(1)
        if part and count >= _MIN_COUNT and count >= _MIN_SHARE * parts.total():
            known[word] = part
    return known


def label_caption(words: list[str], known: Mapping[str, str]) -> Sentence:
    """Label the words of a caption where their part of speech is certain.

    The label comes from the word itself or from its neighbours, because captions have few forms. For example, a word
    for an action is a verb after a noun and before "over", "the" or "along"; a word between "a red" and "is" is a noun.
    Words that no rule covers have an empty label, which training ignores.

    Args:
        words: words of the caption, as spaCy tokenises it.
        known: parts of speech by lower-cased word, as :func:`unambiguous_words` finds them.
    """
    lower = [word.lower() for word in words]
    parts = [CAPTION_WORDS.get(word) or known.get(word, "") for word in lower]
    for i, word in enumerate(lower):
        before = parts[i - 1] if i else ""
        after = parts[i + 1] if i + 1 < len(parts) else "PUNCT"
        if word in _COLOURS_AND_THINGS:
            parts[i] = "ADJ" if after in ("NOUN", "ADJ", "CCONJ") else ""
        elif parts[i] == "":
            determined = before in ("DET", "NUM") or (before == "PRON" and lower[i - 1] in _POSSESSIVES)
            described = before == "ADJ" and lower[i - 1] not in ("black", "white", "next")
            ends_phrase = after in ("VERB", "ADP", "PUNCT", "CCONJ") or lower[i + 1 : i + 2] in (["is"], ["are"])
            acts_on = after in ("DET", "ADP", "ADV", "PRON", "NUM")
            # A word in -ed after an article may be an adjective before a noun that is unknown too.
            if before == "NOUN" and (word.endswith("ing") or word in _ACTIONS) and acts_on:
                parts[i] = "VERB"
            elif (determined or described) and ends_phrase and not word.endswith(("ing", "ed", "ly")):
                parts[i] = "NOUN"
    return list(zip(words, parts, strict=True))


_POSSESSIVES = {"his", "her", "its", "their", "my", "our"}
# Colours that are also things.
_COLOURS_AND_THINGS = {"orange", "gold", "silver", "peach"}


def _read_words() -> dict[str, list[str]]:
    """Read ``caption_words.txt``: paragraphs of a part of speech and its words."""
    text = (Path(__file__).parent / "caption_words.txt").read_text(encoding="utf-8")
    paragraphs = [paragraph.split() for paragraph in text.partition("\n")[2].split("\n\n")]
    return {part: words for part, *words in paragraphs}


_WORDS = _read_words()
_ACTIONS = frozenset(_WORDS.pop("ACTION"))
CAPTION_WORDS = {word: part for part, words in _WORDS.items() for word in words}
"""The part of speech that words have in captions; elsewhere they may have another."""
