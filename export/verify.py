"""Hold a bundle against the torch model that it was exported from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from torch import Tensor

from smart_caption_ros.captioning import Caption
from training.captioning import TrainedCaptioner


@dataclass(frozen=True)
class Agreement:
    """How close the bundle comes to torch."""

    images: int
    identical_captions: int
    largest_log_probability_difference: float
    """Over the words of identical captions, natural logarithm."""


def synthetic_images(count: int, size: int, seed: int = 0) -> np.ndarray:
    """Smooth coloured blobs, (count, size, size, 3) uint8: frames for a check where there are no photographs."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, size=(count, 6, 6, 3), dtype=np.uint8)
    return np.stack([cv2.resize(image, (size, size), interpolation=cv2.INTER_CUBIC) for image in coarse])


def compare(
    trained: TrainedCaptioner,
    images_bgr: np.ndarray,
    captions: Sequence[Caption],
    beam_size: int,
    max_words: int,
    tokens_of: Callable[[np.ndarray], Tensor] | None = None,
) -> Agreement:
    """Hold what a bundle said of frames against what torch says.

    Args:
        images_bgr: (B, 224, 224, 3) uint8.
        captions: of the same frames, by the bundle.
        beam_size, max_words: of the bundle.
        tokens_of: makes the tokens of frames; None: the captioner's own backbone does.
    """
    identical, largest = 0, 0.0
    for image, caption in zip(images_bgr, captions, strict=True):
        if tokens_of is None:
            expected = trained.caption_images(image[None], beam_size, max_words)
        else:
            with torch.inference_mode():
                expected = trained.caption_tokens(tokens_of(image[None]), beam_size, max_words)
        words = trained.sentences(expected)[0]
        if [word.text for word in caption.words] == words:
            identical += 1
            ours = np.array([word.log_probability for word in caption.words])
            theirs = expected.log_probabilities[0, 0, : len(words)].numpy()
            largest = max(largest, float(np.abs(ours - theirs).max(initial=0.0)))
    return Agreement(len(images_bgr), identical, largest)
