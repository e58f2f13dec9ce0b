"""Captions of a scene's frames: sentences over the contents of a frame.

Sentences are sampled from a few patterns over the groups of objects and the spatial relations between them, with large
and central groups first.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from simulation.household.captions.frame_contents import NOUNS, ObjectGroup

if TYPE_CHECKING:
    import inflect
from collections.abc import Callable, Mapping
from typing import NamedTuple

from simulation.household.camera import Camera, CameraPose
from simulation.household.captions.frame_contents import ROOM_NOUNS, FrameAnalyser, FrameContents, MentionableObject
from simulation.household.ground_truth import VisibleExtent
from simulation.household.scene import Scene

_MAX_COUNTED = 6
"""Greatest number of objects that a phrase states."""


@cache
def _english() -> "inflect.engine":
    # Imported at first use: inflect compiles its type checks then, which takes two seconds.
    import inflect

    return inflect.engine()


@cache
def with_indefinite_article(phrase: str) -> str:
    """Prefix a singular noun phrase with ``a`` or ``an``."""
    return str(_english().a(phrase))


@cache
def plural(noun: str) -> str:
    """Return the plural of a singular noun phrase."""
    return str(_english().plural_noun(noun))


def join_phrases(phrases: Sequence[str]) -> str:
    """Join phrases to a list: ``a``, ``a and b``, ``a, b and c``."""
    return str(_english().join(list(phrases), final_sep=""))


def noun_phrase(group: ObjectGroup, rng: np.random.Generator, *, attribute_probability: float = 0.5) -> str:
    """Sample a noun phrase with article or quantity: ``a red cup``, ``two wooden chairs``, ``some books``."""
    if group.noun == "person":
        return _people(group, rng)
    names = NOUNS[group.noun]
    weights = np.array([2.0, *[1.0] * (len(names) - 1)])
    singular = names[int(rng.choice(len(names), p=weights / weights.sum()))]
    attribute = _attribute(group, rng) if rng.random() <= attribute_probability else ""
    count = len(group.objects)
    noun = " ".join(word for word in (attribute, plural(singular) if group.is_plural else singular) if word)
    if not group.is_plural:
        if group.noun == "banana" and len(group.objects[0].placed.mesh.parts) > 3:
            return f"a bunch of {plural(singular)}"
        return with_indefinite_article(noun)
    if group.noun == "book" and count > 4:
        return str(rng.choice([f"a row of {noun}", f"several {noun}", f"many {noun}", f"a lot of {noun}"]))
    if not group.countable or count > _MAX_COUNTED or (count > 3 and rng.random() < 0.5):
        return f"{rng.choice(['some', 'several'] if count > 2 else ['some'])} {noun}"
    return f"{_english().number_to_words(str(count))} {noun}"


def _attribute(group: ObjectGroup, rng: np.random.Generator) -> str:
    """Sample a colour or material that all objects of a group share; empty if they share none."""
    meshes = [member.placed.mesh for member in group.objects]
    shared = ({mesh.colour for mesh in meshes}, {mesh.material for mesh in meshes})
    options = [word for words in shared if len(words) == 1 for word in words if word]
    options = [word for word in options if not (word == "orange" and group.noun == "orange")]
    return str(rng.choice(options)) if options else ""


def _people(group: ObjectGroup, rng: np.random.Generator) -> str:
    if len(group.objects) > 1:
        return f"{_english().number_to_words(str(len(group.objects)))} people"
    colour = group.objects[0].placed.mesh.colour
    draw = rng.random()
    if draw < 0.35:
        return "a person"
    return f"a person in a {colour} shirt" if draw < 0.7 else f"a person wearing a {colour} top"


_NEAR_ON_FLOOR, _NEAR_ON_SUPPORT = 0.5, 0.2
"""Greatest gap in metres between objects that are next to each other, on the floor and on furniture."""
_NEAR_WINDOW = 0.4
_ABOVE_GAP = 0.1
"""Greatest horizontal gap in metres between furniture and what hangs above it."""


class Relation(NamedTuple):
    """A relation that holds between a group and another one."""

    prepositions: tuple[str, ...]
    """Phrases that express it, such as ``next to``; one is drawn, a repeated one more often."""
    other: ObjectGroup
    weight: float
    """Relative frequency with which captions mention it."""


def relations_of(group: ObjectGroup, contents: FrameContents) -> list[Relation]:
    """Return the relations of a group to the other groups of its frame."""
    found: list[Relation] = []
    carrier = contents.group_of(group.support)
    if carrier is not None and not carrier.is_plural:
        words = ("on the sill of",) if carrier.noun == "window" else ("on", "on", "on top of", "sitting on")
        found.append(Relation(words, carrier, 4.0))
    if len(group.objects) > 1:
        return found
    for other in contents.groups:
        if len(other.objects) == 1 and other.noun != group.noun and other is not carrier:
            pairs = _pair_relations(group.objects[0], other.objects[0])
            found += [Relation(words, other, weight) for words, weight in pairs]
    return found


def _pair_relations(first: MentionableObject, second: MentionableObject) -> list[tuple[tuple[str, ...], float]]:
    """Return prepositions and weight of each relation of an object to another, in the room and in the image."""
    found: list[tuple[tuple[str, ...], float]] = []
    on_floor = first.placed.support is None
    first_hangs, second_hangs = first.placed.placement == "wall", second.placed.placement == "wall"
    same_support = first.placed.support == second.placed.support
    has_rug = "rug" in (first.noun, second.noun)
    left, _, right, bottom = first.box_xyxy
    other_left, other_top, other_right, other_bottom = second.box_xyxy
    if same_support and not first_hangs and not second_hangs and not has_rug:
        if _gap(first, second) < (_NEAR_ON_FLOOR if on_floor else _NEAR_ON_SUPPORT):
            found.append((("next to", "beside", "near"), 2.0))
        overlap = min(right, other_right) - max(left, other_left)
        is_nearer = 0.4 < second.depth - first.depth < 2.0 and bottom > other_bottom
        if on_floor and overlap > 0.5 * (right - left) and is_nearer:
            found.append((("in front of",), 2.0))
    is_window = second.noun == "window" and on_floor and not first_hangs and not has_rug
    if is_window and _gap(first, second) < _NEAR_WINDOW:
        found.append((("next to", "near", "by"), 2.0))
    if first.noun in ("clock", "picture", "mirror") and first_hangs and not second_hangs:
        is_above = other_left < (left + right) / 2 < other_right and bottom <= other_top + 4
        if is_above and _gap(first, second) < _ABOVE_GAP:
            found.append((("above", "on the wall above"), 3.0))
    if same_support and not has_rug and first_hangs == second_hangs and abs(first.depth - second.depth) < 1.0:
        if right < other_left:
            found.append((("to the left of",), 0.5))
        elif left > other_right:
            found.append((("to the right of",), 0.5))
    return found


def _gap(first: MentionableObject, second: MentionableObject) -> float:
    """Return the horizontal distance in metres between the axis-aligned bounds of two objects."""
    (low_a, high_a), (low_b, high_b) = (
        member.placed.oriented_boxes().axis_aligned_bounds() for member in (first, second)
    )
    return float(np.linalg.norm(np.maximum(0, np.maximum(low_a[:2] - high_b[:2], low_b[:2] - high_a[:2]))))


def random_sentence(contents: FrameContents, rng: np.random.Generator) -> str:
    """Sample a sentence about a frame."""
    if not contents.groups:
        return str(rng.choice(wall_sentences(contents)))
    weights = np.array([weight for _, weight in _PATTERNS])
    pattern = _PATTERNS[int(rng.choice(len(_PATTERNS), p=weights / weights.sum()))][0]
    return _punctuated(pattern(_Sentence(contents, rng)) or _list_of_objects(_Sentence(contents, rng)))


def wall_sentences(contents: FrameContents) -> list[str]:
    """Return the sentences for a frame without mentionable objects."""
    wall = with_indefinite_article(contents.wall)
    phrases = [
        wall,
        f"{wall} in a {contents.room}",
        f"a view of {wall}",
        f"the {contents.wall} of a {contents.room}",
        f"an image of {wall}",
        f"part of {wall} in a {contents.room}",
    ]
    return [_punctuated(phrase) for phrase in phrases]


class _Sentence:
    """A sentence that is being written, with the groups that it has mentioned so far."""

    def __init__(self, contents: FrameContents, rng: np.random.Generator) -> None:
        self.contents, self.rng = contents, rng
        self.mentioned: list[ObjectGroup] = []

    def choose(self, *options: str) -> str:
        return str(self.rng.choice(options))

    def mention(self, group: ObjectGroup, attribute_probability: float = 0.5) -> str:
        """Return a noun phrase for a group."""
        self.mentioned.append(group)
        return noun_phrase(group, self.rng, attribute_probability=attribute_probability)

    def mention_all(self, groups: list[ObjectGroup]) -> list[str]:
        return [self.mention(group) for group in groups]

    def main_group(self) -> ObjectGroup:
        """Sample the group to begin with, mostly the most salient one."""
        first = self.contents.groups[:3]
        weights = np.array([group.salience for group in first]) ** 2.5
        return first[int(self.rng.choice(len(first), p=weights / weights.sum()))]

    def further_groups(self, count: int) -> list[ObjectGroup]:
        """Return up to ``count`` groups with nouns that the sentence does not have, the most salient ones first."""
        nouns = {group.noun for group in self.mentioned}
        further = []
        for group in self.contents.groups:
            # Objects on furniture are skipped in half of the cases.
            if group.noun not in nouns and (group.support is None or self.rng.random() < 0.5):
                further.append(group)
                nouns.add(group.noun)
        return further[:count]

    def mention_with_relation(self, group: ObjectGroup, *, always: bool = False) -> str:
        """Return a noun phrase and, in most cases or ``always``, its relation to another group if it has one."""
        phrase = self.mention(group)
        relations = [
            relation for relation in relations_of(group, self.contents) if relation.other not in self.mentioned
        ]
        if relations and (always or self.rng.random() < 0.8):
            weights = np.array([relation.weight for relation in relations])
            prepositions, other, _ = relations[int(self.rng.choice(len(relations), p=weights / weights.sum()))]
            return f"{phrase} {self.choose(*prepositions)} {self.mention(other, 0.35)}"
        is_against_wall = len(group.objects) == 1 and group.objects[0].placed.id in self.contents.against_wall
        if is_against_wall and self.rng.random() < 0.4:
            return f"{phrase} against {with_indefinite_article(self.contents.wall)}"
        return phrase

    def room_noun(self) -> str:
        return self.choose(*ROOM_NOUNS.get(self.contents.room, (self.contents.room,)))


def _carrier_with_load(sentence: _Sentence) -> str | None:
    """Write "a table with two cups on it"; None if no object carries another one."""
    contents, rng = sentence.contents, sentence.rng
    carriers = [
        group for group in contents.groups[:6] if group.noun not in ("window", "rug") and contents.groups_on(group)
    ]
    if not carriers:
        return None
    carrier = carriers[0]
    load = contents.groups_on(carrier)[: int(rng.integers(1, 4))]
    phrase, things = sentence.mention(carrier), join_phrases(sentence.mention_all(load))
    if carrier.noun == "shelf":
        options = [
            f"{phrase} with {things}",
            f"{phrase} filled with {things}" if len(load[0].objects) > 8 else f"{things} on {phrase}",
        ]
    else:
        options = [
            f"{phrase} with {things} on it",
            f"{phrase} with {things} on top",
            f"{things} on {phrase}",
            f"{things} sitting on {phrase}",
        ]
    if carrier.noun in ("dining table", "desk", "coffee table", "counter"):
        options.append(f"{phrase} topped with {things}")
    words = sentence.choose(*options)
    if rng.random() < 0.35 and contents.room != "room":
        words += f" in {with_indefinite_article(sentence.room_noun())}"
    return words


def _room_with_objects(sentence: _Sentence) -> str:
    """Write "a kitchen with a sink next to an oven and a window"."""
    contents, rng = sentence.contents, sentence.rng
    first = sentence.mention_with_relation(sentence.main_group())
    things = join_phrases([first, *sentence.mention_all(sentence.further_groups(int(rng.integers(1, 4))))])
    room = with_indefinite_article(sentence.room_noun())
    has_window = any(group.noun == "window" for group in contents.groups)
    night = " at night" if contents.night and has_window and rng.random() < 0.4 else ""
    return sentence.choose(
        f"{room}{night} with {things}",
        f"{room}{night} with {things}",
        f"{room} that has {things}",
        f"{things} in {room}{night}",
    )


def _there_is(sentence: _Sentence) -> str:
    """Write "there is a couch against a white wall and a lamp"."""
    main = sentence.main_group()
    words = f"there {'are' if main.is_plural else 'is'} {sentence.mention_with_relation(main)}"
    if (further := sentence.further_groups(1)) and sentence.rng.random() < 0.6:
        words += f" and {sentence.mention(further[0])}"
    if sentence.contents.room != "room" and sentence.rng.random() < 0.3:
        words += f" in the {sentence.room_noun()}"
    return words


def _main_object(sentence: _Sentence) -> str:
    """Write "a close up of a bed", "a chair standing on a wooden floor" or "a view of a desk near a window"."""
    contents, rng, main = sentence.contents, sentence.rng, sentence.main_group()
    single, first = len(main.objects) == 1, main.objects[0]
    stands_on_floor = single and first.placed.placement == "floor" and first.noun not in ("rug", "counter")
    if stands_on_floor and rng.random() < 0.25:
        floor = with_indefinite_article(contents.floor)
        return f"{sentence.mention(main)} {sentence.choose('standing on', 'on')} {floor}"
    phrase = sentence.mention_with_relation(main, always=True)
    if single and first.share > 0.3 and rng.random() < 0.4:
        return f"a close up of {phrase}"
    if rng.random() < 0.2:
        return f"{sentence.choose('a view of', 'an image of', 'a photo of')} {phrase}"
    if len(sentence.mentioned) == 1 and (further := sentence.further_groups(1)):
        return f"{phrase} and {sentence.mention(further[0])}"
    return phrase


def _list_of_objects(sentence: _Sentence) -> str:
    """Write "a bed, a nightstand and a lamp"."""
    first = sentence.mention_with_relation(sentence.main_group())
    further = sentence.further_groups(int(sentence.rng.integers(1, 3)))
    return join_phrases([first, *sentence.mention_all(further)])


_PATTERNS: tuple[tuple[Callable[[_Sentence], str | None], float], ...] = (
    (_room_with_objects, 3.0),
    (_carrier_with_load, 4.0),
    (_main_object, 2.0),
    (_list_of_objects, 1.5),
    (_there_is, 1.0),
)
"""Patterns with their relative frequencies."""


def _punctuated(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


CAPTIONS_PER_FRAME = 5
_MAX_SENTENCES = 40
"""Sentences that are sampled for a frame in search of different ones."""


class CaptionWriter:
    """Writes captions of the frames of one scene."""

    def __init__(self, scene: Scene, camera: Camera) -> None:
        self._analyser = FrameAnalyser(scene, camera)

    def write(self, pose: CameraPose, extents: Mapping[int, VisibleExtent], rng: np.random.Generator) -> list[str]:
        """Return ``CAPTIONS_PER_FRAME`` different sentences about a frame.

        Args:
            pose: of the camera.
            extents: visible objects by instance number.
            rng: source of every random choice.
        """
        contents = self._analyser.contents(pose, extents)
        captions: list[str] = []
        for _ in range(_MAX_SENTENCES):
            sentence = random_sentence(contents, rng)
            if sentence not in captions:
                captions.append(sentence)
            if len(captions) == CAPTIONS_PER_FRAME:
                return captions
        further = [sentence for sentence in wall_sentences(contents) if sentence not in captions]
        return [*captions, *further][:CAPTIONS_PER_FRAME]
