"""The views of photographs in the epochs of a phase: which one each photograph has, and how it is cut out."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.files import sha256_of_bytes
from training.configs.schema import PhaseConfig
from training.data.augmentation import random_view

_SCHEDULE = 1
"""Spawn key of the generators that choose among views; those that draw a view have an image's index in its place."""


class Views(NamedTuple):
    """Views of B images of a split."""

    images: NDArray[np.integer]
    """(B,) indices into the split."""
    slots: NDArray[np.integer]
    """(B,) index of the view among those of its image whose features may be kept."""
    versions: NDArray[np.integer]
    """(B,) at least 1; the views that take a slot one after the other have different versions."""

    def select(self, chosen: NDArray[Any]) -> "Views":
        """Return the views at some places of the batch."""
        return Views(self.images[chosen], self.slots[chosen], self.versions[chosen])


def whole_photographs(images: NDArray[np.integer]) -> Views:
    """Return the views of photographs as they are."""
    return Views(images, np.zeros(len(images), int), np.ones(len(images), int))


class ViewSchedule:
    """The views of the training split in a phase.

    A view depends on the seed, the phase, the epoch and the image alone: neither on the batch nor on the number of
    processes, nor on whether features of it are kept.

    Without random crops an image has two views, the photograph and its mirror image, and a random one in every epoch.
    With random crops it has a new view in the first epoch and, if none are kept, in every other one. If views are kept,
    only a share of the images has a new view in an epoch after the first; it takes the slot of the oldest one when all
    slots are taken. Every other image has one of its kept views, drawn at random.
    """

    def __init__(self, images: int, phase: PhaseConfig, seed: int) -> None:
        """
        Args:
            images: number of images of the split.
            phase: the phase.
            seed: of the run.
        """
        self._images, self._phase = images, phase
        self._seed = (seed, int(sha256_of_bytes(phase.name.encode())[:8], 16))

    @property
    def slots(self) -> int:
        """Number of views of an image whose features may be kept."""
        if self._phase.crop == 1:
            return 2 if self._phase.flip else 1
        return self._phase.cached_views

    def epoch(self, epoch: int) -> Views:
        """Choose a view of every image for an epoch, counted from 0."""
        images = np.arange(self._images)
        if self._phase.crop == 1:
            flips = self._random(epoch).random(self._images) < 0.5 if self._phase.flip else np.zeros(self._images, bool)
            return whole_photographs(images)._replace(slots=flips.astype(int))
        if not self.slots:
            return Views(images, np.zeros(self._images, int), np.full(self._images, epoch + 1))
        versions = np.zeros((self._images, self.slots), int)
        made = np.zeros(self._images, int)
        slots = np.zeros(self._images, int)
        for current in range(epoch + 1):
            random = self._random(current)
            slots = (random.random(self._images) * np.minimum(made, self.slots)).astype(int)
            renewed = random.permutation(self._images)
            if current > 0:
                renewed = renewed[: round(self._phase.refresh * self._images)]
            slots[renewed] = made[renewed] % self.slots
            versions[renewed, slots[renewed]] = current + 1
            made[renewed] += 1
        return Views(images, slots, versions[images, slots])

    def cut(self, photographs_bgr: Iterable[NDArray[np.uint8]], views: Views) -> NDArray[np.uint8]:
        """Make views of B photographs, (B, H, W, 3) uint8."""
        phase, frames = self._phase, []
        for frame, image, slot, version in zip(photographs_bgr, *views, strict=True):
            random = np.random.default_rng((*self._seed, int(version), int(image)))
            flip = bool(slot) if phase.crop == 1 else phase.flip and bool(random.random() < 0.5)
            frames.append(random_view(frame, flip, phase.crop, random)[0])
        return np.stack(frames)

    def _random(self, epoch: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence((*self._seed, epoch), spawn_key=(_SCHEDULE,)))
