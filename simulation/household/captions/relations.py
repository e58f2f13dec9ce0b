"""Spatial relations between the objects of a frame."""

from typing import NamedTuple

import numpy as np

from simulation.household.captions.frame_contents import FrameContents, MentionableObject, ObjectGroup

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
    (low_a, high_a), (low_b, high_b) = (each.placed.oriented_boxes().axis_aligned_bounds() for each in (first, second))
    return float(np.linalg.norm(np.maximum(0, np.maximum(low_a[:2] - high_b[:2], low_b[:2] - high_a[:2]))))
