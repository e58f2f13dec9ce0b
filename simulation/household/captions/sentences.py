"""Sentence patterns over the contents of a frame."""

from collections.abc import Callable

import numpy as np

from simulation.household.captions.frame_contents import FrameContents, ObjectGroup
from simulation.household.captions.nouns import ROOM_NOUNS
from simulation.household.captions.phrases import join_phrases, noun_phrase, with_indefinite_article
from simulation.household.captions.relations import relations_of


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
        relations = [each for each in relations_of(group, self.contents) if each.other not in self.mentioned]
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
