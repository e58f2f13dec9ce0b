"""The objects of a frame that a caption may mention, in groups by noun and place."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from simulation.household.camera import Camera, CameraPose
from simulation.household.ground_truth import VisibleExtent
from simulation.household.scene import PlacedObject, Room, Scene
from smart_caption_ros.detection.boxes import Box

NOUNS: dict[str, tuple[str, ...]] = {
    "bottle": ("bottle",),
    "cup": ("cup", "mug"),
    "knife": ("knife",),
    "bowl": ("bowl",),
    "wine glass": ("wine glass", "glass"),
    "fork": ("fork",),
    "spoon": ("spoon",),
    "banana": ("banana",),
    "apple": ("apple",),
    "orange": ("orange",),
    "cake": ("cake",),
    "potted plant": ("potted plant", "plant", "house plant"),
    "mouse": ("mouse", "computer mouse"),
    "keyboard": ("keyboard",),
    "laptop": ("laptop", "laptop computer"),
    "cell phone": ("cell phone", "phone"),
    "book": ("book",),
    "clock": ("clock",),
    "chair": ("chair",),
    "dining table": ("table", "dining table"),
    "couch": ("couch", "sofa"),
    "bed": ("bed",),
    "toilet": ("toilet",),
    "television": ("television", "tv"),
    "computer monitor": ("computer monitor", "monitor", "computer screen"),
    "microwave": ("microwave",),
    "toaster": ("toaster",),
    "refrigerator": ("refrigerator", "fridge"),
    "oven": ("oven", "stove"),
    "sink": ("sink",),
    "person": ("person",),
    "window": ("window",),
    "door": ("door",),
    "desk": ("desk",),
    "coffee table": ("coffee table",),
    "nightstand": ("nightstand",),
    "cabinet": ("cabinet",),
    "shelf": ("bookshelf", "shelf"),
    "counter": ("counter", "kitchen counter"),
    "cupboard": ("cupboard",),
    "rug": ("rug",),
    "lamp": ("lamp",),
    "picture": ("picture", "framed picture"),
    "curtain": ("curtain",),
    "mirror": ("mirror",),
    "bathtub": ("bathtub",),
    "towel": ("towel",),
    "plate": ("plate",),
    "vase": ("vase",),
    "pot": ("pot",),
}
"""Singular nouns for an object by ``ObjectMesh.noun``; the first is used twice as often as each other one."""

ROOM_NOUNS: dict[str, tuple[str, ...]] = {"office": ("office", "home office", "study")}
"""Nouns for a kind of room that has further names."""

TYPICAL_OBJECTS: dict[str, set[str]] = {
    "kitchen": {"refrigerator", "oven", "sink", "microwave", "counter"},
    "living room": {"couch", "coffee table"},
    "bedroom": {"bed"},
    "office": {"desk"},
    "dining room": {"dining table"},
    "bathroom": {"toilet", "bathtub", "sink"},
}
"""Objects by which a kind of room is recognised; a frame without any of them is called a room."""

BACKGROUND_OBJECTS = {"picture", "curtain", "cupboard", "door", "window", "lamp", "counter", "rug", "mirror"}
"""Classes that people rarely mention first."""


_MIN_SHARE = 0.0015
"""Least share of the frame's pixels at which an object is mentioned."""
_LARGE_SHARE = 0.03
"""Share of the frame's pixels from which on an object is mentioned even if most of it is hidden."""
_MIN_VISIBLE, _MIN_VISIBLE_IF_LARGE = 0.3, 0.1
"""Least share of an object's outline in the frame that is not occluded."""
_MIN_IN_FRAME = 0.4
"""Least share of an object's outline that lies in the frame; large objects may be cut further."""
_BACKGROUND_WEIGHT = 0.35
"""Factor on the salience of ``BACKGROUND_OBJECTS``."""
_WALL_DISTANCE = 0.08
"""Metres up to which an object stands against a wall."""


@dataclass(frozen=True)
class MentionableObject:
    """An object of which enough is visible to be mentioned."""

    placed: PlacedObject
    share: float
    """Its share of the frame's pixels."""
    box_xyxy: Box
    """Bounding box of its visible pixels in pixels, exclusive at the right and bottom."""
    depth: float
    """Metres from the camera's image plane to its centre."""
    salience: float
    """Weight by size and by distance from the centre of the frame."""

    @property
    def noun(self) -> str:
        return self.placed.mesh.noun


@dataclass(frozen=True)
class ObjectGroup:
    """Objects of one noun on one support, which one noun phrase mentions."""

    objects: tuple[MentionableObject, ...]
    countable: bool
    """Whether no further such object is visible there, so that their number may be given."""

    @property
    def noun(self) -> str:
        return self.objects[0].noun

    @property
    def support(self) -> int | None:
        """Instance number of the object that carries them."""
        return self.objects[0].placed.support

    @property
    def is_plural(self) -> bool:
        # The units of a fitted kitchen are one counter.
        return len(self.objects) > 1 and self.noun != "counter"

    @property
    def salience(self) -> float:
        greatest = max(member.salience for member in self.objects)
        return greatest + 0.3 * (sum(member.salience for member in self.objects) - greatest)


@dataclass(frozen=True)
class FrameContents:
    """What a frame shows, in the terms of its captions."""

    room: str
    """Kind of the room, ``room`` if nothing typical of it is visible."""
    floor: str
    """Noun phrase without article, as is ``wall``."""
    wall: str
    night: bool
    groups: tuple[ObjectGroup, ...]
    """Most salient first."""
    against_wall: frozenset[int]
    """Instance numbers of the objects that stand against a wall."""

    @cached_property
    def _group_by_id(self) -> dict[int, ObjectGroup]:
        return {member.placed.id: group for group in self.groups for member in group.objects}

    def group_of(self, number: int | None) -> ObjectGroup | None:
        """Return the group of the object with an instance number, None if it is not mentionable."""
        return self._group_by_id.get(number) if number is not None else None

    def groups_on(self, group: ObjectGroup) -> list[ObjectGroup]:
        """Return the groups that stand on an object; none if ``group`` has several objects."""
        if len(group.objects) > 1:
            return []
        return [other for other in self.groups if other.support == group.objects[0].placed.id]


class FrameAnalyser:
    """Finds the mentionable objects in the frames of one scene."""

    def __init__(self, scene: Scene, camera: Camera) -> None:
        self._scene, self._camera = scene, camera
        self._hulls: dict[int, NDArray[np.float64]] = {}

    def contents(self, pose: CameraPose, extents: Mapping[int, VisibleExtent]) -> FrameContents:
        """Group the objects of a frame.

        Args:
            pose: of the camera.
            extents: visible objects by instance number.
        """
        scene, room = self._scene, self._scene.room
        visible: dict[tuple[str, int | None], int] = defaultdict(int)
        found: dict[tuple[str, int | None], list[MentionableObject]] = defaultdict(list)
        for number, extent in extents.items():
            placed = scene.object_by_id(number)
            key = placed.mesh.noun, placed.support
            visible[key] += 1
            if mentionable := self._mentionable(placed, extent, pose):
                found[key].append(mentionable)
        groups = [ObjectGroup(tuple(objects), len(objects) == visible[key]) for key, objects in found.items()]
        groups.sort(key=lambda group: -group.salience)
        is_recognisable = bool(TYPICAL_OBJECTS[room.kind] & {group.noun for group in groups})
        # Tiles cover a part of the walls and paint the rest, so the colour of a tiled wall is not mentioned.
        wall = f"{room.wall_colour} wall" if room.wall_tiles is None else "tiled wall"
        return FrameContents(
            room=room.kind if is_recognisable else "room",
            floor=room.floor_noun,
            wall=wall,
            night=not scene.lighting.day,
            groups=tuple(groups),
            against_wall=frozenset(
                member.placed.id
                for objects in found.values()
                for member in objects
                if _is_against_wall(member.placed, room)
            ),
        )

    def _mentionable(self, placed: PlacedObject, extent: VisibleExtent, pose: CameraPose) -> MentionableObject | None:
        """Return the object if it has a noun and enough of it is visible."""
        if placed.mesh.noun not in NOUNS:
            return None
        width, height = self._camera.width, self._camera.height
        share = extent.pixels / (width * height)
        whole, in_frame = self._outline_areas(placed, pose)
        is_hidden = extent.pixels < _MIN_VISIBLE * in_frame or in_frame < _MIN_IN_FRAME * whole
        if (
            share < _MIN_SHARE
            or (share < _LARGE_SHARE and is_hidden)
            or extent.pixels < _MIN_VISIBLE_IF_LARGE * in_frame
        ):
            return None
        x, y = (extent.left + extent.right + 1) / 2 / width - 0.5, (extent.top + extent.bottom + 1) / 2 / height - 0.5
        salience = np.sqrt(extent.box_area / (width * height)) * np.exp(-1.5 * (x * x + y * y))
        if placed.mesh.class_name in BACKGROUND_OBJECTS:
            salience *= _BACKGROUND_WEIGHT
        depth = float(self._camera.to_camera(pose, placed.centre[None])[0, 2])
        box = (extent.left, extent.top, extent.right + 1, extent.bottom + 1)
        return MentionableObject(placed, share, box, depth, float(salience))

    def _outline_areas(self, placed: PlacedObject, pose: CameraPose) -> tuple[float, float]:
        """Return the area in pixels of the object's convex outline without occlusion: all of it, and in the frame."""
        if placed.id not in self._hulls:
            points = np.concatenate([part.vertices for part in placed.mesh.parts])
            hull = points[ConvexHull(points, qhull_options="QJ").vertices]
            self._hulls[placed.id] = placed.pose.to_world(hull)
        pixels = self._camera.project(pose, self._hulls[placed.id]).clip(-1e4, 1e4).astype(np.float32)
        outline = cv2.convexHull(pixels)
        width, height = self._camera.width, self._camera.height
        frame = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
        return float(cv2.contourArea(outline)), float(cv2.intersectConvexConvex(outline, frame)[0])


def _is_against_wall(placed: PlacedObject, room: Room) -> bool:
    if placed.placement != "floor":
        return False
    low, high = placed.oriented_boxes().axis_aligned_bounds()
    return bool(min(*low[:2], room.width - high[0], room.depth - high[1]) < _WALL_DISTANCE)
