"""Captions of a scene's frames."""

from collections.abc import Mapping

import numpy as np

from simulation.household.camera import Camera, CameraPose
from simulation.household.captions.frame_contents import FrameAnalyser
from simulation.household.captions.sentences import random_sentence, wall_sentences
from simulation.household.ground_truth import VisibleExtent
from simulation.household.scene import Scene

CAPTIONS_PER_FRAME = 5
_MAX_SENTENCES = 40
"""Sentences that are sampled for a frame in search of different ones."""


class CaptionWriter:
    """Writes captions of the frames of one scene."""

    def __init__(self, scene: Scene, camera: Camera) -> None:
        self._analyser = FrameAnalyser(scene, camera)

    def write(self, pose: CameraPose, extents: Mapping[int, VisibleExtent], rng: np.random.Generator) -> list[str]:
        """Return ``CAPTIONS_PER_FRAME`` different sentences about a frame.

        Args:
            pose: of the camera.
            extents: visible objects by instance number.
            rng: source of every random choice.
        """
        contents = self._analyser.contents(pose, extents)
        captions: list[str] = []
        for _ in range(_MAX_SENTENCES):
            sentence = random_sentence(contents, rng)
            if sentence not in captions:
                captions.append(sentence)
            if len(captions) == CAPTIONS_PER_FRAME:
                return captions
        further = [sentence for sentence in wall_sentences(contents) if sentence not in captions]
        return [*captions, *further][:CAPTIONS_PER_FRAME]
