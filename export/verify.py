"""Compare a bundle with the torch model that it was exported from, and its two forms with each other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
import torch

from smart_caption_ros.captioning import Bundle, Caption
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, EVERY_BEAM, VISION_GRAPH, WORD_BIAS, WORD_GROUPS
from smart_caption_ros.captioning.guidance import WordBiases
from smart_caption_ros.captioning.vision import grid_boxes
from smart_caption_ros.engines import Engine
from smart_caption_ros.engines.base import Graph
from training.engine.trained_captioner import TrainedCaptioner
from training.models.captioner import Visual
from training.vision.backbone import IMAGE_SIZE


@dataclass(frozen=True)
class Agreement:
    """How close the bundle's captions are to torch's."""

    images: int
    identical_captions: int
    largest_log_probability_difference: float
    """Over the words of identical captions, natural logarithm."""


def synthetic_images(count: int, size: int, seed: int = 0) -> np.ndarray:
    """Draw smooth coloured blobs, (count, size, size, 3) uint8: frames for a check where there are no photographs."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, size=(count, 6, 6, 3), dtype=np.uint8)
    return np.stack([cv2.resize(image, (size, size), interpolation=cv2.INTER_CUBIC) for image in coarse])


def grid_inputs(names: Sequence[str], tokens: np.ndarray, grid: tuple[int, int], words: int) -> dict[str, np.ndarray]:
    """Make the inputs of a captioner graph for square frames and a search without a guide.

    Args:
        names: of the inputs.
        tokens: (B, N, token_width) float32, of the cells of the grid.
        grid: rows and columns.
        words: size of the vocabulary.
    """
    batch = len(tokens)
    biases = WordBiases.none(batch, words)
    inputs = {
        "tokens": tokens,
        "token_mask": np.ones(tokens.shape[:2], dtype=bool),
        "token_boxes": np.tile(grid_boxes(*grid), (batch, 1, 1)),
        "image_size": np.full((batch, 2), IMAGE_SIZE, np.float32),
        WORD_BIAS: biases.bias,
        WORD_GROUPS: biases.groups,
        EVERY_BEAM: np.zeros(batch, bool),
    }
    return {name: inputs[name] for name in names}


def compare(
    trained: TrainedCaptioner,
    images_bgr: np.ndarray,
    captions: Sequence[Caption],
    beam_size: int,
    max_words: int,
    visual_of: Callable[[np.ndarray], Visual] | None = None,
) -> Agreement:
    """Compare a bundle's captions of frames with torch's.

    Args:
        trained: the torch model.
        images_bgr: (B, H, W, 3) uint8, of the vision graph's size.
        captions: of the same frames, by the bundle.
        beam_size, max_words: of the bundle.
        visual_of: computes what the captioner sees of frames; None: its own backbone does.
    """
    identical, largest = 0, 0.0
    for image, caption in zip(images_bgr, captions, strict=True):
        if visual_of is None:
            expected = trained.caption_images(image[None], beam_size, max_words)
        else:
            with torch.inference_mode():
                expected = trained.caption(visual_of(image[None]), beam_size, max_words)
        words = trained.sentences(expected)[0]
        if [word.text for word in caption.words] == words:
            identical += 1
            ours = np.array([word.log_probability for word in caption.words])
            theirs = expected.log_probabilities[0, 0, : len(words)].numpy()
            largest = max(largest, float(np.abs(ours - theirs).max(initial=0.0)))
    return Agreement(len(images_bgr), identical, largest)


def compare_forms(bundle: Bundle, engine: Engine, images_bgr: np.ndarray) -> Agreement:
    """Compare the static form of a bundle's captioner with its Loop form.

    ``images_bgr``: (B, H, W, 3) uint8, of the vision graph's size.
    """
    assert bundle.static_graph is not None
    vision, loop, static = (
        engine.load(path) for path in (bundle.path / VISION_GRAPH, bundle.path / CAPTIONER_GRAPH, bundle.static_graph)
    )
    identical, largest = 0, 0.0
    for image in images_bgr:
        tokens = vision.run({"image_bgr": image[None]})["tokens"]
        inputs = grid_inputs(bundle.captioner_inputs, tokens, bundle.grid, len(bundle.vocabulary))
        expected = loop.run(inputs)
        found = static.run({name: inputs[name] for name in static.input_names})
        steps = expected["words"].shape[2]
        words = found["words"][0, 0]
        if np.array_equal(words[:steps], expected["words"][0, 0]) and not words[steps:].any():
            identical += 1
            difference = found["log_probabilities"][0, 0, :steps] - expected["log_probabilities"][0, 0]
            largest = max(largest, float(np.abs(difference).max()))
    return Agreement(len(images_bgr), identical, largest)


class Difference(NamedTuple):
    """Largest differences between the objects of a vision graph and torch's."""

    score: float
    """Difference of a class score."""
    box: float
    """Difference of a box's edge, in fractions of the frame, where a class has a score of at least 0.05."""


def compare_detections(trained: TrainedCaptioner, vision: Graph, images_bgr: np.ndarray) -> Difference:
    """Compare the objects that a vision graph finds in frames of its size, (B, H, W, 3) uint8, with torch's."""
    assert trained.backbone is not None
    scores, edges = 0.0, 0.0
    for image in images_bgr:
        outputs = vision.run({"image_bgr": image[None]})
        with torch.inference_mode():
            expected = trained.backbone.features(torch.from_numpy(image[None])).detections
        assert expected is not None
        class_scores = expected.class_scores.numpy()
        sure = class_scores.max(axis=-1) >= 0.05
        scores = max(scores, float(np.abs(outputs["class_scores"] - class_scores).max()))
        found, wanted = outputs["boxes"][sure], expected.boxes_xyxy.numpy()[sure]
        edges = max(edges, float(np.abs(found - wanted).max(initial=0.0)))
    return Difference(scores, edges)
