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
        smallest_share: lower bound of the share of each side that the crop keeps; 1 keeps the whole photograph.

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


def degrade_as_camera(image_bgr: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    """Make a photograph worse, as the camera of a robot would, by one to three of several means.
    ``image_bgr``: (H, W, 3) uint8.

    Returns:
        (H, W, 3) uint8.
    """
    means = random.choice(len(_MEANS), size=int(random.integers(1, 4)), replace=False)
    for mean in sorted(means):
        image_bgr = _MEANS[mean](image_bgr, random)
    return image_bgr


def _tilt(image_bgr: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    height, width = image_bgr.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), random.uniform(-12, 12), random.uniform(1.0, 1.25))
    return np.asarray(cv2.warpAffine(image_bgr, turn, (width, height), borderMode=cv2.BORDER_REFLECT_101), np.uint8)


def _expose(image_bgr: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    """Change gamma, gain and white balance; dark more often than bright."""
    gamma, gains = np.exp(random.uniform(-0.4, 0.9)), random.uniform(0.6, 1.2) * random.uniform(0.88, 1.12, size=3)
    levels = (np.arange(256) / 255) ** gamma
    table = np.clip(levels[:, None] * gains * 255, 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(image_bgr, table[None]), np.uint8)


def _desaturate(image_bgr: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    grey = cv2.cvtColor(cv2.cvtColor(image_bgr, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
    share = random.uniform(0.0, 0.6)
    return np.asarray(cv2.addWeighted(image_bgr, 1 - share, grey, share, 0), np.uint8)


def _blur(image_bgr: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    """Blur by motion in a random direction, or by a lens out of focus."""
    if random.random() < 0.5:
        return np.asarray(cv2.GaussianBlur(image_bgr, (0, 0), random.uniform(0.6, 1.8)), np.uint8)
    length, angle = int(random.integers(3, 10)), random.uniform(0, np.pi)
    kernel = np.zeros((length, length), np.float32)
    middle = (length - 1) / 2
    reach = middle * np.array([np.cos(angle), np.sin(angle)])
    ends = [tuple(np.round(middle + sign * reach).astype(int).tolist()) for sign in (-1, 1)]
    cv2.line(kernel, ends[0], ends[1], 1.0)
    return np.asarray(cv2.filter2D(image_bgr, -1, kernel / kernel.sum()), np.uint8)


def _add_noise(image_bgr: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    noise = random.normal(0, random.uniform(3, 14), image_bgr.shape)
    return np.clip(image_bgr + noise, 0, 255).astype(np.uint8)


def _compress(image_bgr: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    quality = [cv2.IMWRITE_JPEG_QUALITY, int(random.integers(15, 60))]
    return np.asarray(cv2.imdecode(cv2.imencode(".jpg", image_bgr, quality)[1], cv2.IMREAD_COLOR), np.uint8)


_MEANS = (_tilt, _expose, _desaturate, _blur, _add_noise, _compress)
"""In the order in which they happen to a frame."""
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
        """(images,) which whole photographs are mirrored; without meaning in a phase whose views are drawn anew."""
        if phase.has_fixed_views and phase.flip:
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
            flip = phase.flip and bool(random.random() < 0.5)
            if phase.has_fixed_views:
                flip = bool(self.mirrored[image])
            view = random_view(frame, flip, phase.crop, random)
            frames.append(degrade_as_camera(view, random) if random.random() < phase.degrade else view)
        return np.stack(frames)
