"""What a model builder returns: the parts of a thing, what it is called, and where other things can stand on it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from training.datagen.household.mesh import Part


@dataclass(frozen=True)
class Surface:
    """A level rectangle that carries things, in its item's frame."""

    x: float
    y: float
    half_width: float
    half_depth: float
    z: float
    kind: str = "top"
    """What may stand here: ``top``, ``shelf``, ``plate``, ``seat`` or ``sill``."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A thing in its own frame: it stands on z = 0, its front looks along -y, a wall would be at its +y side."""

    name: str
    """ACVR's class name for a thing that is labelled, another noun for the rest of the room."""
    parts: tuple[Part, ...]
    colour: str = ""
    """The word for what most of it looks like; empty where no single word is right."""
    material: str = ""
    """An adjective: wooden, glass, metal, leather."""
    surfaces: tuple[Surface, ...] = ()
    noun: str = ""
    """What people call it where that is not its name."""

    @cached_property
    def boxes(self) -> NDArray[np.float64]:
        """(parts, 2, 3): each part's smallest and largest x, y and z."""
        return np.stack([part.bounds for part in self.parts])

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """(2, 3): the whole shape's smallest and largest x, y and z."""
        return np.stack([self.boxes[:, 0].min(axis=0), self.boxes[:, 1].max(axis=0)])

    @property
    def size(self) -> NDArray[np.float64]:
        """(3,): width, depth and height in metres."""
        return self.bounds[1] - self.bounds[0]
