"""Noun phrases for groups of objects."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from simulation.household.captions.frame_contents import ObjectGroup
from simulation.household.captions.nouns import NOUNS

if TYPE_CHECKING:
    import inflect

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
    return f"{_english().number_to_words(count)} {noun}"


def _attribute(group: ObjectGroup, rng: np.random.Generator) -> str:
    """Sample a colour or material that all objects of a group share; empty if they share none."""
    meshes = [each.placed.mesh for each in group.objects]
    shared = ({mesh.colour for mesh in meshes}, {mesh.material for mesh in meshes})
    options = [word for words in shared if len(words) == 1 for word in words if word]
    options = [word for word in options if not (word == "orange" and group.noun == "orange")]
    return str(rng.choice(options)) if options else ""


def _people(group: ObjectGroup, rng: np.random.Generator) -> str:
    if len(group.objects) > 1:
        return f"{_english().number_to_words(len(group.objects))} people"
    colour = group.objects[0].placed.mesh.colour
    draw = rng.random()
    if draw < 0.35:
        return "a person"
    return f"a person in a {colour} shirt" if draw < 0.7 else f"a person wearing a {colour} top"
