"""Instance masks without Blender: the parts of every object as filled convex outlines, the farthest first."""

import cv2
import numpy as np
from numpy.typing import NDArray

from simulation.household.camera import NEAR, Camera, CameraPose
from simulation.household.scene import Scene


def render_instances(scene: Scene, camera: Camera, pose: CameraPose) -> NDArray[np.uint16]:
    """Return the instance number of the object at each pixel, 0 for none, (H, W)."""
    instances = np.zeros((camera.height, camera.width), np.uint16)
    parts = []
    for placed in scene.objects:
        for part in placed.mesh.parts:
            points = placed.pose.to_world(part.vertices)
            depths = camera.to_camera(pose, points)[:, 2]
            if depths.min() > NEAR:
                parts.append((float(depths.mean()), placed.id, camera.project(pose, points)))
    for _, number, pixels in sorted(parts, key=lambda part: -part[0]):
        outline = cv2.convexHull(np.clip(np.rint(pixels), -9999, 9999).astype(np.int32))
        cv2.fillConvexPoly(instances, outline, number)
    return instances
