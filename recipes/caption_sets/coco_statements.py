"""Captions from the statements of ``coco_photographs``: COCO-QA's questions and answers, turned back into sentences.

The sentences were people's captions before they became questions, but the questions changed them: numbers disagree
with verbs ("four people is posing"), articles are definite, every third statement is a colour and a noun ("red bus").
Wrong forms are repaired, colours join the sentences that name their noun, and what does not read like a person's
caption is dropped.
"""

import random
import re
from collections.abc import Sequence
from itertools import pairwise

from recipes.caption_sets.fluency import Fluency
from recipes.rooms.words import COLOURS, NUMERALS, PICTURE_OF, plain, without_repetitions
from training.data.inflection import is_plural, with_indefinite_article
from training.data.tokenizer import tokenize

MIN_WORDS, MAX_WORDS = 5, 18
MAX_CAPTIONS = 3
_MAX_JOINED_WORDS = 9
"""Longest of two sentences that are joined."""
# Words of questions that were not turned back, and of sentences about the photograph or the photographer.
_QUESTION = frozenset(
    {"does", "do", "did", "i", "you", "can", "what", "how", "which", "me", "we", "why", "picture", "photo", "image"}
)
# "Two elephants is the man leading": the question asked for the object.
_OBJECT_FIRST = re.compile(
    r"\b(?:is|are) (?:(?:a|an|the) )?(?:man|woman|person|boy|girl|lady|guy|child|people|cat|dog)\b"
)
_PLURAL_VERBS = {"is": "are", "was": "were", "has": "have", "sits": "sit", "stands": "stand", "lies": "lie"}
_PAIRS = frozenset({"glasses", "scissors", "pants", "shorts", "furniture", "grass", "bread", "luggage", "sheep"})
_SUBJECT_WORDS = 4
"""Words among which the verb of a sentence's subject is looked for."""


def captions_from_statements(statements: Sequence[str], fluency: Fluency, seed: str) -> list[str]:
    """Write at most ``MAX_CAPTIONS`` captions of one photograph.

    Args:
        statements: about the photograph, as written.
        fluency: tells which sentences read like people's captions.
        seed: seed of the choice among forms, the photograph's id: captions are the same in every run.
    """
    chance = random.Random(seed)
    colours = _colours(statements)
    sentences = []
    for statement in statements:
        words = tokenize(PICTURE_OF.sub("", plain(statement)))
        if len(words) >= MIN_WORDS - 1 and (repaired := _repaired(words)) is not None:
            coloured = _with_colours(fluency.with_usual_articles(repaired), colours)
            sentences.append(_as_a_person_begins(coloured, chance))
    sentences = [words for words in sentences if len(words) <= MAX_WORDS and fluency.reads_well(words)]
    joined = [[*one, "and", *other] for one, other in _pairs(sentences) if fluency.reads_well([*one, "and", *other])]
    captions = [" ".join(words).replace(" 's", "'s") for words in (*joined, *sentences) if len(words) >= MIN_WORDS]
    return without_repetitions(captions, overlap=0.8)[:MAX_CAPTIONS]


def _colours(statements: Sequence[str]) -> dict[str, str]:
    """Collect the statements of a colour and a noun; nouns with two colours are left out."""
    found: dict[str, set[str]] = {}
    for statement in statements:
        match statement.lower().split():
            case [colour, noun] if colour in COLOURS:
                found.setdefault(noun, set()).add(colour)
    return {noun: next(iter(colours)) for noun, colours in found.items() if len(colours) == 1}


def _repaired(words: Sequence[str]) -> list[str] | None:
    """Make the verb agree with its subject; None for what is no statement."""
    if _QUESTION & set(words) or words[0] in _PAIRS or _OBJECT_FIRST.search(" ".join(words)):
        return None
    subject = 0 if is_plural(words[0]) else 1 if words[0] in NUMERALS[2:] else None
    if subject is None:
        return list(words) if words[0] in ("a", "an", "one") else None
    changed = list(words)
    for place in range(subject + 1, min(len(words), subject + 1 + _SUBJECT_WORDS)):
        if words[place] in _PLURAL_VERBS:
            changed[place] = _PLURAL_VERBS[words[place]]
            break
    return changed


def _with_colours(words: Sequence[str], colours: dict[str, str]) -> list[str]:
    """Add the colour of a noun that has an article or number before it, once."""
    changed: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        colour = colours.get(word)
        if colour and words.count(word) == 1 and (before in ("a", "an", "the") or before in NUMERALS):
            if before in ("a", "an"):
                changed[-1] = with_indefinite_article(colour).split(" ", 1)[0]
            changed.append(colour)
        changed.append(word)
    return changed


def _as_a_person_begins(words: Sequence[str], chance: random.Random) -> list[str]:
    """Drop the auxiliary of half the sentences: people write "a bus parked on a street" as often as "is parked"."""
    for place, (word, after) in enumerate(pairwise(words)):
        if word in ("is", "are") and re.fullmatch(r"\w{2,}(?:ing|ed)", after):
            return [*words[:place], *words[place + 1 :]] if chance.random() < 0.5 else list(words)
    return list(words)


def _pairs(sentences: Sequence[list[str]]) -> list[tuple[list[str], list[str]]]:
    """Pairs of short sentences about different things."""
    short = [words for words in sentences if len(words) <= _MAX_JOINED_WORDS and "and" not in words]
    return [
        (one, other)
        for place, one in enumerate(short)
        for other in short[place + 1 :]
        if len(set(one) & set(other) - {"a", "an", "the", "is", "are", "on", "in", "of", "with"}) == 0
    ]
