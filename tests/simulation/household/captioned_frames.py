"""Frames with captions, made without Blender."""

from collections.abc import Mapping
from typing import NamedTuple

from simulation.household.camera import CameraPose
from simulation.household.captions.frame_contents import FrameAnalyser, FrameContents
from simulation.household.captions.writer import CaptionWriter
from simulation.household.ground_truth import VisibleExtent, visible_extents
from simulation.household.scene import Scene
from simulation.household.sequences import RenderSettings, caption_generator, plan_sequence
from tests.simulation.household.convex_renderer import render_instances


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
