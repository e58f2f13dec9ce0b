"""The mesh of one household object, with the words that captions use for it and the surfaces that carry others."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulation.household.mesh import MeshPart

SurfaceKind = Literal["top", "shelf", "plate", "seat", "sill"]


@dataclass(frozen=True)
class SupportSurface:
    """A horizontal rectangle on which other objects can stand, in metres in the frame of its object."""

    x: float
    """Centre, as is ``y``."""
    y: float
    half_width: float
    """Half the extent along x."""
    half_depth: float
    """Half the extent along y."""
    z: float
    kind: SurfaceKind = "top"
    """Decides which objects may stand here."""


@dataclass(frozen=True, eq=False)
class ObjectMesh:
    """An object in its own frame, in metres: it stands on z = 0, its front faces -y, its back faces +y."""

    class_name: str
    """ACVR's class name if the object is labelled, any other noun if not."""
    parts: tuple[MeshPart, ...]
    colour: str = ""
    """Word for the dominant colour; empty if no single word is right."""
    material: str = ""
    """Adjective, such as ``wooden``, ``glass``, ``metal`` or ``leather``; empty if none is right."""
    surfaces: tuple[SupportSurface, ...] = ()
    caption_noun: str = ""
    """Noun in captions; empty if it is the class name."""

    @property
    def noun(self) -> str:
        """Noun that captions use, a key of ``captions.nouns.NOUNS`` if captions mention such objects."""
        return self.caption_noun or self.class_name

    @cached_property
    def part_bounds(self) -> NDArray[np.float64]:
        """Minimum and maximum x, y and z of each part, (parts, 2, 3)."""
        return np.stack([part.bounds for part in self.parts])

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """Minimum and maximum x, y and z of the object, (2, 3)."""
        return np.stack([self.part_bounds[:, 0].min(axis=0), self.part_bounds[:, 1].max(axis=0)])

    @property
    def size(self) -> NDArray[np.float64]:
        """Width, depth and height, (3,)."""
        return self.bounds[1] - self.bounds[0]
