"""Up to five captions for a photograph, from the best sources that it has.

People's own captions come first, then their sentences and answers, then retrieved captions, then templates. The dev
split is chosen after the first pass, over people's texts, and before the second: captions of dev photographs are not
in the pool that captions of other photographs are retrieved from.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recipes.image_content import ImageContent
from recipes.rooms.descriptions import captions_from_descriptions
from recipes.rooms.evidence import CLASSES_OF, Evidence, collect_evidence
from recipes.rooms.photographs import COCO, NYU, Photograph, RoomsData
from recipes.rooms.places import ROOM_NOUNS
from recipes.rooms.questions import Facts, extract_facts, statements
from recipes.rooms.retrieval import CaptionPool, noun_finder
from recipes.rooms.words import frequent_words, join_phrases, plain, with_article, without_repetitions, words_in
from smart_caption_ros.files import sha256_of_bytes
from smart_caption_ros.grounding.nouns import NounFinder
from smart_caption_ros.grounding.word_vectors import WordVectors
from training.data.inflection import plural, singular

MIN_SHARE = 0.012
"""Smallest fraction of the image that a named thing covers."""
# One word for each thing, the most informative first.
_THINGS = words_in(
    """
    bed couch table toilet bathtub refrigerator stove sink television desk chair cabinet bookshelf dresser fireplace
    pool_table laptop armchair microwave window curtain rug lamp potted_plant vase clock bottle book bowl cup pillow
    """
)
_NAMED_IN_PLURAL = frozenset({"cabinet", "curtain", "book", "pillow"})
"""Things that the segmenter finds without counting them, and of which there usually are several."""
_CROWDS = frozenset({"chair", "book", "bottle", "cup", "bowl"})
"""Things of which there are often more than the detector finds."""
_BARE_PLACES = frozenset({"hallway", "attic", "bathroom", "bedroom", "kitchen", "dining room", "office", "closet"})
"""Places whose walls and floor are named where fewer than two things are certain."""
_COLOURED = frozenset({"bed", "couch", "chair", "desk", "cabinet", "armchair", "rug", "curtain"})
"""Things that often have one colour and are neither reflective nor transparent."""
_MAX_THINGS = 4


def template_captions(evidence: Evidence, wanted: int, seed: str) -> list[str]:
    """Write at most ``wanted`` different captions; none for a place that is not inside a building.

    Args:
        evidence: evidence for one photograph.
        wanted: number of captions.
        seed: seed of the order of the templates, the photograph's id: captions are the same in every run.
    """
    if not evidence.indoors:
        return []
    things = [_phrase(name, evidence) for name in _largest_things(evidence)]
    if len(things) < 2:
        return _bare_room(evidence, things)[:wanted]
    room = with_article(evidence.rooms[0])
    patterns = [f"{room} with {join_phrases(things[:count])}" for count in (2, 3) if len(things) >= count]
    patterns.append(f"{things[0]} and {things[1]} in {room}")
    if len(things) > 2:
        patterns.append(f"{room} with {things[0]} and {things[2]}")
    random.Random(seed).shuffle(patterns)
    return list(dict.fromkeys(patterns))[:wanted]


def _bare_room(evidence: Evidence, things: list[str]) -> list[str]:
    """Name the walls and the floor of a place with few things in it."""
    surfaces = [
        f"{next(iter(colours))} {words}"
        for noun, words in (("wall", "walls"), ("floor", "floor"))
        if evidence.nouns.get(noun, 0) > 0.1 and len(colours := evidence.colours.get(noun, frozenset())) == 1
    ]
    named = [phrase if phrase.endswith("walls") else with_article(phrase) for phrase in surfaces]
    if evidence.rooms[0] not in _BARE_PLACES or not things + named:
        return []
    return [f"{with_article(evidence.rooms[0])} with {join_phrases([*things, *named])}"]


def _largest_things(evidence: Evidence) -> list[str]:
    names = [name.replace("_", " ") for name in _THINGS]
    fitting = [name for name in names if name in evidence.certain and evidence.nouns[name] >= MIN_SHARE]
    order = {name: rank for rank, name in enumerate(names)}
    return sorted(fitting, key=lambda name: -(evidence.nouns[name] ** 0.5) + 0.01 * order[name])[:_MAX_THINGS]


def _phrase(name: str, evidence: Evidence) -> str:
    colours = evidence.colours.get(name, frozenset()) if name in _COLOURED else frozenset()
    described = f"{next(iter(colours))} {name}" if len(colours) == 1 else name
    certain, possible = evidence.counts.get(name, (0, 0))
    if name in _NAMED_IN_PLURAL:
        return plural(described)
    # Detectors miss some of many objects: no count beyond two is reliable.
    if certain > 1:
        return f"two {plural(name)}" if certain == possible == 2 and name not in _CROWDS else plural(name)
    return with_article(name if possible > 1 else described)


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
