"""Read corpora with parts of speech: Brown and CoNLL-2000.

The readers yield sentences as lists of (word, part of speech); an empty part of speech is unknown. The parts of speech
are those of Universal Dependencies, with proper names as NOUN, auxiliaries as VERB and subordinating conjunctions as
ADP: the tagger only has to tell nouns from other words.
"""

import re
import zipfile
from collections.abc import Iterator, Mapping
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
