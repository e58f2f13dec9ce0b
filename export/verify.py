"""Hold a bundle against the torch model that it was exported from."""

from dataclasses import dataclass

import cv2
import numpy as np
import torch

from smart_caption_ros.captioning import Bundle, Captioner
from smart_caption_ros.captioning.engines import create_engine
from training.captioning import TrainedCaptioner


@dataclass(frozen=True)
class Agreement:
    """How close the bundle comes to torch."""

    images: int
    identical_captions: int
    largest_log_probability_difference: float
    """Over the words of identical captions, natural logarithm."""
    engine: str


def synthetic_images(count: int, size: int, seed: int = 0) -> np.ndarray:
    """Smooth coloured blobs, (count, size, size, 3) uint8: frames for a check where there are no photographs."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, size=(count, 6, 6, 3), dtype=np.uint8)
    return np.stack([cv2.resize(image, (size, size), interpolation=cv2.INTER_CUBIC) for image in coarse])


def compare(trained: TrainedCaptioner, bundle: Bundle, images_bgr: np.ndarray, engine: str = "auto") -> Agreement:
    """Caption frames with torch and with the bundle.

    Args:
        images_bgr: (B, 224, 224, 3) uint8.
    """
    captioner = Captioner(bundle, create_engine(engine))
    identical, largest = 0, 0.0
    for image in images_bgr:
        with torch.inference_mode():
            expected = trained.caption_images(image[None], bundle.beam_size, bundle.max_words)
        words = trained.sentences(expected)[0]
        caption = captioner.caption(image)
        if [word.text for word in caption.words] == words:
            identical += 1
            ours = np.array([word.log_probability for word in caption.words])
            theirs = expected.log_probabilities[0, 0, : len(words)].numpy()
            largest = max(largest, float(np.abs(ours - theirs).max(initial=0.0)))
    return Agreement(len(images_bgr), identical, largest, captioner.engine)
