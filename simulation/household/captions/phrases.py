"""Noun phrases for groups of objects."""

import numpy as np

from recipes.phrases import NUMERALS
from simulation.household.captions.frame_contents import ObjectGroup
from simulation.household.captions.nouns import NOUNS
from training.data.inflection import plural, with_indefinite_article

_MAX_COUNTED = 6
"""Greatest number of objects that a phrase states."""


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
    return f"{NUMERALS[count]} {noun}"


def _attribute(group: ObjectGroup, rng: np.random.Generator) -> str:
    """Sample a colour or material that all objects of a group share; empty if they share none."""
    meshes = [each.placed.mesh for each in group.objects]
    shared = ({mesh.colour for mesh in meshes}, {mesh.material for mesh in meshes})
    options = [word for words in shared if len(words) == 1 for word in words if word]
    options = [word for word in options if not (word == "orange" and group.noun == "orange")]
    return str(rng.choice(options)) if options else ""


def _people(group: ObjectGroup, rng: np.random.Generator) -> str:
    if len(group.objects) > 1:
        return f"{NUMERALS[len(group.objects)]} people"
    colour = group.objects[0].placed.mesh.colour
    draw = rng.random()
    if draw < 0.35:
        return "a person"
    return f"a person in a {colour} shirt" if draw < 0.7 else f"a person wearing a {colour} top"
