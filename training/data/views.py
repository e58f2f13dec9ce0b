"""The views of photographs in an epoch: which are mirrored, and how they are cropped."""

from collections.abc import Iterable

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.files import sha256_of_bytes
from training.configs.schema import PhaseConfig


def random_view(image_bgr: np.ndarray, flip: bool, smallest_share: float, random: np.random.Generator) -> np.ndarray:
    """Crop a photograph at a random place and resize the crop to the photograph's size.

    Args:
        image_bgr: (H, W, 3) uint8.
        flip: whether to mirror the crop.
        smallest_share: lower bound of the share of each side that the crop keeps; 1 keeps the whole photograph.
        random: generator of this image.

    Returns:
        (H, W, 3) uint8.
    """
    height, width = image_bgr.shape[:2]
    if smallest_share < 1:
        share = random.uniform(smallest_share, 1.0, size=2)
        rows, columns = round(height * share[0]), round(width * share[1])
        top, left = int(random.integers(0, height - rows + 1)), int(random.integers(0, width - columns + 1))
        cropped = image_bgr[top : top + rows, left : left + columns]
        image_bgr = cv2.resize(cropped, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.ascontiguousarray(image_bgr[:, ::-1]) if flip else image_bgr


_MIRRORED = 1
"""Spawn key of the generators that choose which whole photographs are mirrored."""


class EpochViews:
    """The views of the training split in an epoch of a phase.

    A view depends on the seed, the phase, the epoch and the image alone: neither on the batch nor on the number of
    processes. Without random crops an image has two views, the photograph and its mirror image; with random crops it
    has a new view in every epoch.
    """

    def __init__(self, images: int, phase: PhaseConfig, seed: int, epoch: int) -> None:
        """Draw which of the split's ``images`` are mirrored in an epoch of the phase, counted from 0."""
        self._phase, self._epoch = phase, epoch
        self._seed = (seed, int(sha256_of_bytes(phase.name.encode())[:8], 16))
        self.mirrored: NDArray[np.bool_] = np.zeros(images, bool)
        """(images,) which whole photographs are mirrored; without meaning in a phase with random crops."""
        if phase.crop == 1 and phase.flip:
            sequence = np.random.SeedSequence((*self._seed, epoch), spawn_key=(_MIRRORED,))
            self.mirrored = np.random.default_rng(sequence).random(images) < 0.5

    def cut(self, photographs_bgr: Iterable[NDArray[np.uint8]], images: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Make the views of B images, (B, H, W, 3) uint8.

        Args:
            photographs_bgr: (H, W, 3) uint8 each.
            images: (B,) indices into the split.
        """
        phase, frames = self._phase, []
        for frame, image in zip(photographs_bgr, images, strict=True):
            random = np.random.default_rng((*self._seed, self._epoch + 1, int(image)))
            flip = bool(self.mirrored[image]) if phase.crop == 1 else phase.flip and bool(random.random() < 0.5)
            frames.append(random_view(frame, flip, phase.crop, random))
        return np.stack(frames)
