"""A stand-in for the renderer where no Blender is: items painted as convex outlines, the farthest first."""

import cv2
import numpy as np
from numpy.typing import NDArray

from training.datagen.household.camera import NEAR, Camera, Pose
from training.datagen.household.scene import Scene


def paint_index(scene: Scene, camera: Camera, pose: Pose) -> NDArray[np.uint16]:
    """(height, width): the item that each pixel shows, 0 for none."""
    index = np.zeros((camera.height, camera.width), np.uint16)
    parts = []
    for item in scene.items:
        for part in item.shape.parts:
            points = item.to_world(part.vertices)
            depths = camera.to_view(pose, points)[:, 2]
            if depths.min() > NEAR:
                parts.append((float(depths.mean()), item.id, camera.project(pose, points)))
    for _, number, pixels in sorted(parts, key=lambda part: -part[0]):
        cv2.fillConvexPoly(index, cv2.convexHull(np.clip(np.rint(pixels), -9999, 9999).astype(np.int32)), number)
    return index
