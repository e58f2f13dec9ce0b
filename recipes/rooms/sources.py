"""Up to five captions for a photograph, from the best sources that it has.

People's own captions come first, then their sentences and answers, then retrieved captions, then templates. The dev
split is chosen after the first pass, over people's texts, and before the second: captions of dev photographs are not
in the pool that captions of other photographs are retrieved from.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recipes.rooms.descriptions import captions_from_descriptions
from recipes.rooms.evidence import Evidence, collect_evidence
from recipes.rooms.photographs import COCO, NYU, Photograph, RoomsData
from recipes.rooms.phrases import frequent_words, plain, without_repetitions
from recipes.rooms.places import ROOM_NOUNS
from recipes.rooms.questions import Facts, extract_facts
from recipes.rooms.retrieval import CaptionPool, noun_finder
from recipes.rooms.statements import statements
from recipes.rooms.supported_nouns import CLASSES_OF
from recipes.rooms.templates import template_captions
from recipes.teachers.image_content import ImageContent
from smart_caption_ros.files import sha256_of_bytes
from smart_caption_ros.grounding.nouns import NounFinder
from smart_caption_ros.grounding.word_vectors import WordVectors
from training.data.inflection import singular

MAX_CAPTIONS = 5
MAX_RETRIEVED_OUTDOORS = 2
"""Retrieved captions of a photograph that is not inside a building: a household robot learns little from streets."""
ENOUGH = 3
"""Number of captions from better sources at which no template is used."""
MIN_USES_IN_CAPTIONS, MIN_USES_IN_DESCRIPTIONS = 3, 5
"""How often a word must occur in captions, or in descriptions, which have more misspellings, to be a known word."""
HUMAN_CAPTION, HUMAN_SENTENCES, QUESTIONS, RETRIEVED, GRAMMAR = SOURCES = (
    "human_caption",
    "human_sentences",
    "questions",
    "retrieved",
    "grammar",
)
"""The field ``source`` of a caption, best first."""
_OVERLAP = 0.9
"""Fraction of shared words at which a caption repeats an earlier one."""


@dataclass(frozen=True)
class CaptionedPhotograph:
    """A photograph with its captions."""

    photograph: Photograph
    captions: tuple[tuple[str, str], ...]
    """Each a source and a sentence."""


@dataclass(frozen=True)
class Draft:
    """The result of the first pass: captions by people, and what the second pass needs."""

    captioned: CaptionedPhotograph
    facts: Facts
    evidence: Evidence


class CaptionWriter:
    """Writes the captions of photographs. Equal data give equal captions."""

    def __init__(self, data: RoomsData) -> None:
        """Count the words of all captions and descriptions."""
        captions = [caption.text for caption in data.pool]
        descriptions = [text for photograph in data.photographs for text in photograph.descriptions]
        self._known = frequent_words(captions, MIN_USES_IN_CAPTIONS) | frequent_words(
            descriptions, MIN_USES_IN_DESCRIPTIONS
        )
        self._finder: NounFinder = noun_finder()

    def draft(self, photograph: Photograph, content: ImageContent) -> Draft:
        """Collect the captions by people, and write captions from their sentences about details.

        Args:
            photograph: the photograph with people's texts about it.
            content: its content, found by the teacher networks.
        """
        facts = extract_facts(photograph.questions, self._known)
        named = {noun for noun in facts.nouns if noun in CLASSES_OF}
        named |= self._nouns([*photograph.descriptions, *photograph.captions])
        evidence = collect_evidence(photograph.scene, content, named)
        found: list[tuple[str, str]] = []
        _add(found, HUMAN_CAPTION, [plain(caption) for caption in photograph.captions])
        sentences = captions_from_descriptions(photograph.descriptions, evidence.rooms, self._known)
        _add(found, HUMAN_SENTENCES, sentences)
        return Draft(CaptionedPhotograph(photograph, tuple(found)), facts, evidence)

    def pool(self, data: RoomsData, held_out: Collection[str]) -> CaptionPool:
        """Index the captions to retrieve from, without those of held-out photographs.

        Args:
            data: contains all captions.
            held_out: ids of the held-out photographs.
        """
        texts = [caption.text for caption in data.pool if caption.photograph_id not in held_out]
        return CaptionPool(texts, self._finder, WordVectors.load())

    def complete(self, draft: Draft, pool: CaptionPool) -> CaptionedPhotograph:
        """Add captions from questions, other photographs and templates; COCO's photographs need none."""
        photograph, evidence = draft.captioned.photograph, draft.evidence
        if photograph.origin == COCO:
            return draft.captioned
        found = list(draft.captioned.captions)
        if photograph.origin == NYU:
            _add(found, QUESTIONS, statements(draft.facts, evidence.rooms))
        wanted = MAX_CAPTIONS - len(found) if evidence.indoors else MAX_RETRIEVED_OUTDOORS
        if wanted:
            _add(found, RETRIEVED, pool.retrieve(evidence, wanted))
        if len(found) < ENOUGH:
            _add(found, GRAMMAR, template_captions(evidence, ENOUGH - len(found), photograph.id))
        return CaptionedPhotograph(photograph, tuple(found))

    def _nouns(self, sentences: Sequence[str]) -> set[str]:
        lemmas = {singular(noun.lemma) for sentence in sentences for noun in self._finder.nouns(sentence)}
        return {lemma for lemma in lemmas if lemma in CLASSES_OF and lemma not in ROOM_NOUNS}


def choose_held_out(drafts: Sequence[Draft], wanted: int) -> set[str]:
    """Choose the photographs of the dev split among those that have captions by people.

    Photographs are ordered by a hash of the id, so the choice changes little when photographs are added or removed.

    Args:
        drafts: drafts of all photographs.
        wanted: number of photographs.

    Returns:
        Ids of photographs.
    """
    fitting = [draft.captioned.photograph.id for draft in drafts if draft.captioned.captions]
    return set(sorted(fitting, key=lambda name: sha256_of_bytes(name.encode()))[:wanted])


def _add(found: list[tuple[str, str]], source: str, sentences: Sequence[str]) -> None:
    """Append sentences that repeat none of the captions, up to ``MAX_CAPTIONS`` in all."""
    present = [sentence for _, sentence in found]
    for sentence in without_repetitions([*present, *sentences], _OVERLAP)[
        len(without_repetitions(present, _OVERLAP)) :
    ]:
        if len(found) < MAX_CAPTIONS and sentence not in present:
            found.append((source, sentence))
