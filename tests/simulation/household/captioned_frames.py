"""Frames with captions, made without Blender: objects are filled convex outlines, the farthest first."""

from collections.abc import Mapping
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from simulation.household.camera import NEAR, Camera, CameraPose
from simulation.household.captions.frame_contents import FrameAnalyser, FrameContents
from simulation.household.captions.sentences import CaptionWriter
from simulation.household.ground_truth import VisibleExtent, visible_extents
from simulation.household.scene import Scene
from simulation.household.sequences import RenderSettings, caption_generator, plan_sequence


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


class CaptionedFrame(NamedTuple):
    """A frame with its ground truth and captions."""

    scene: Scene
    pose: CameraPose
    extents: Mapping[int, VisibleExtent]
    contents: FrameContents
    captions: list[str]


def captioned_frames(number: int, seed: int) -> list[CaptionedFrame]:
    """Return four frames of a sequence, far from one another."""
    settings = RenderSettings(frames=4, step=2.0, seed=seed)
    sequence = plan_sequence(settings, number)
    scene = sequence.scene
    writer, analyser = CaptionWriter(scene, settings.camera), FrameAnalyser(scene, settings.camera)
    frames = []
    for frame, pose in enumerate(sequence.poses):
        extents = visible_extents(render_instances(scene, settings.camera, pose))
        captions = writer.write(pose, extents, caption_generator(settings, number, frame))
        frames.append(CaptionedFrame(scene, pose, extents, analyser.contents(pose, extents), captions))
    return frames
