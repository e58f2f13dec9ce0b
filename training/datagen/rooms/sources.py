"""Up to five captions for a photograph, from the best source there is."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from smart_caption_ros.grounding.nouns import NounFinder
from smart_caption_ros.grounding.word_vectors import WordVectors
from training.datagen.rooms import grammar, questions
from training.datagen.rooms.descriptions import joined
from training.datagen.rooms.evidence import weigh
from training.datagen.rooms.photographs import COCO, NYU, Photograph, RoomsData
from training.datagen.rooms.retrieval import Pool, noun_finder, words_of
from training.datagen.rooms.teachers import Seen
from training.datagen.rooms.words import ROOM_NOUNS, SUPPORT, distinct, plain, singular

CAPTIONS_PER_PHOTOGRAPH = 5
CAPTIONS_OUTSIDE = 2
"""At most so many are retrieved for a photograph of the open air."""
ENOUGH = 3
"""Captions of better sources, at which the grammar keeps silent."""
KNOWN_FROM = 3
"""Times that a word must occur in the pool of captions to be a word that a description may have."""
KNOWN_IN_DESCRIPTIONS = 5
"""Or so often in descriptions, where slips of the pen are commoner."""
HUMAN_CAPTION, HUMAN_SENTENCES, QUESTIONS, RETRIEVED, GRAMMAR = SOURCES = (
    "human_caption",
    "human_sentences",
    "questions",
    "retrieved",
    "grammar",
)


@dataclass(frozen=True)
class Captioned:
    """A photograph with its captions and where each is from."""

    photograph: Photograph
    captions: tuple[tuple[str, str], ...]
    """Each a source and a sentence."""

    def by_people(self) -> "Captioned":
        """The same with those captions alone that people wrote, whole or as sentences about details."""
        kept = tuple(each for each in self.captions if each[0] in (HUMAN_CAPTION, HUMAN_SENTENCES))
        return Captioned(self.photograph, kept)


class Writer:
    """Writes captions of photographs; the same for the same data."""

    def __init__(self, data: RoomsData) -> None:
        texts = [caption.text for caption in data.pool]
        described = [text for photograph in data.photographs for text in photograph.descriptions]
        self._known = words_of(texts, KNOWN_FROM) | words_of(described, KNOWN_IN_DESCRIPTIONS)
        self._finder: NounFinder = noun_finder()
        self._pool = Pool(texts, self._finder, WordVectors.load())

    def captions(self, photograph: Photograph, seen: Seen) -> Captioned:
        """
        Args:
            photograph: with its human words.
            seen: what the teachers saw in it.
        """
        found: list[tuple[str, str]] = []
        own = [plain(caption) for caption in photograph.captions]
        _add(found, HUMAN_CAPTION, own)
        if photograph.origin == COCO:
            return Captioned(photograph, tuple(found))
        facts = questions.understand(photograph.questions, self._known)
        human = {noun for noun in facts.nouns if noun in SUPPORT} | self._nouns(
            [*photograph.descriptions, *photograph.captions]
        )
        evidence = weigh(photograph.scene, seen, human)
        _add(found, HUMAN_SENTENCES, joined(photograph.descriptions, evidence.rooms, self._known))
        if photograph.origin == NYU:
            _add(found, QUESTIONS, questions.statements(facts, evidence.rooms))
        # A robot of the house has little to learn from streets.
        wanted = CAPTIONS_PER_PHOTOGRAPH - len(found) if evidence.indoors else CAPTIONS_OUTSIDE
        if wanted:
            _add(found, RETRIEVED, self._pool.fitting(evidence, wanted))
        if len(found) < ENOUGH:
            _add(found, GRAMMAR, grammar.sentences(evidence, ENOUGH - len(found), photograph.id))
        return Captioned(photograph, tuple(found))

    def _nouns(self, sentences: Sequence[str]) -> set[str]:
        lemmas = {singular(noun.lemma) for sentence in sentences for noun in self._finder.nouns(sentence)}
        return {lemma for lemma in lemmas if lemma in SUPPORT and lemma not in ROOM_NOUNS}


def _add(found: list[tuple[str, str]], source: str, sentences: Sequence[str]) -> None:
    """Append what is new, up to the number of captions that a photograph gets."""
    there = [sentence for _, sentence in found]
    for sentence in distinct([*there, *sentences], 0.9)[len(distinct(there, 0.9)) :]:
        if len(found) < CAPTIONS_PER_PHOTOGRAPH and sentence not in there:
            found.append((source, sentence))


def held_out(captioned: Sequence[Captioned], wanted: int) -> set[str]:
    """Ids of photographs for the dev split, of those that people have described.

    They are chosen by a hash of their id, so that other photographs in the data change little.
    """
    fitting = [each.photograph.id for each in captioned if each.by_people().captions]
    return set(sorted(fitting, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:wanted])
