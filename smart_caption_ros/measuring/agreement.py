"""Compare the captions of all engines of a machine.

The reference is ONNX Runtime on the CPU with the captioner's Loop form. The vision graph and the captioner are compared
separately, the captioner on the visual tokens of the reference, so that a difference can be attributed to one of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import cv2
import numpy as np

from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, CAPTIONER_GRAPHS, STATIC_GRAPH, Bundle
from smart_caption_ros.captioning.captioner import Captioner
from smart_caption_ros.engines import ENGINE_NAMES, available_engines, create_engine
from smart_caption_ros.engines.base import EngineError

REFERENCE = "onnxruntime-cpu"
TOLERANCES = {"float32": 1e-4, "float16": 2e-2, "int8": 0.1}
"""Maximum difference of log probabilities, by the precision that a bundle computes in."""
SAME_CAPTIONS = {"int8": 0.7}
"""Minimum share of captions with the same words; 1 for other precisions. In 8 bits, the static form rounds only weights
and the Loop form inputs as well, so that beams of nearly equal score may change places."""
TF32_TOLERANCE = 5e-3
"""Maximum difference for float32 on TensorRT, which multiplies in TF32 with 10 bits of mantissa."""


@dataclass(frozen=True)
class EngineAgreement:
    """Comparison of an engine and a form of the captioner with the reference.

    Attributes:
        agrees: whether all differences are within the tolerance.
        largest_log_probability_difference: over the words of the captions with the same words; natural logarithm.
        largest_token_difference: of the visual tokens, relative to the largest one.
        tolerance: maximum difference of log probabilities; visual tokens may differ by ten times as much.
        problem: why the engine does not agree, in a sentence; empty where it does.
    """

    engine: str
    graph: str
    runs: str
    agrees: bool
    same_captions: int
    captions: int
    largest_log_probability_difference: float
    largest_token_difference: float
    tolerance: float
    problem: str


def golden_frames(count: int = 8, width: int = 640, height: int = 480) -> list[np.ndarray]:
    """Generate frames that are the same on every machine: smooth gradients of colours, uint8 (height, width, 3)."""
    random = np.random.default_rng(0)
    coarse = random.integers(0, 256, size=(count, 6, 8, 3), dtype=np.uint8)
    return [cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR) for image in coarse]


def compare_engines(
    bundle: Bundle,
    frames: int = 8,
    threads: int | None = None,
    on_engine: Callable[[str], None] = lambda name: None,
) -> list[EngineAgreement]:
    """Compare every engine that works on this machine, with every form of the captioner that it runs.

    TensorRT engines that are not in the cache are built first, which takes minutes.

    Args:
        frames: number of golden frames; each is decoded with all of its visual tokens and with two thirds of them.

    Raises:
        EngineError: the reference does not run.
    """
    reference = _Reference(Captioner(bundle, create_engine(REFERENCE, threads), CAPTIONER_GRAPH), frames)
    forms = [CAPTIONER_GRAPH, *([STATIC_GRAPH] if bundle.static_graph else [])]
    available = {report.name for report in available_engines() if report.available}
    agreements = []
    for name in ENGINE_NAMES:
        if name in available:
            on_engine(name)
            engine = create_engine(name, threads)
            for form in forms:
                if form in (CAPTIONER_GRAPHS[runs] for runs in engine.graph_forms):
                    agreements.append(reference.compare(name, partial(Captioner, bundle, engine, form), form))
    return agreements


class _Reference:
    def __init__(self, captioner: Captioner, frames: int) -> None:
        self._bundle = captioner.bundle
        self._frames = golden_frames(frames)
        self._tokens = [captioner.visual_tokens(frame) for frame in self._frames]
        self._inputs = [(tokens, mask) for tokens in self._tokens for mask in _masks(tokens.shape[1])]
        self._expected = [self._best(captioner.decode(tokens, mask)) for tokens, mask in self._inputs]

    def compare(self, name: str, load: Callable[[], Captioner], graph: str) -> EngineAgreement:
        precision = self._bundle.precision
        tolerance = TOLERANCES.get(precision, TOLERANCES["float32"])
        if precision == "float32" and "tensorrt" in name:
            tolerance = TF32_TOLERANCE
        same, largest, largest_token, runs, problem = 0, 0.0, 0.0, "", ""
        try:
            captioner = load()
            runs = captioner.engine_choice
            for frame, expected in zip(self._frames, self._tokens, strict=True):
                difference = np.abs(captioner.visual_tokens(frame) - expected).max() / np.abs(expected).max()
                largest_token = float(np.maximum(largest_token, difference))  # unlike max(), propagates NaN
            for (tokens, mask), (words, log_probabilities) in zip(self._inputs, self._expected, strict=True):
                our_words, our_log_probabilities = self._best(captioner.decode(tokens, mask))
                if np.array_equal(our_words, words):
                    same += 1
                    difference = np.abs(our_log_probabilities - log_probabilities).max()
                    largest = float(np.maximum(largest, difference))
        except EngineError as error:
            problem = str(error)
        total = len(self._inputs)
        if not problem and same < SAME_CAPTIONS.get(precision, 1.0) * total:
            problem = f"{total - same} of {total} captions differ"
        if not problem and not largest <= tolerance:
            problem = f"log probabilities differ by {largest:.1e}, and {tolerance:.0e} is allowed"
        if not problem and not largest_token <= 10 * tolerance:
            problem = f"visual tokens differ by {largest_token:.1e} of the largest one"
        return EngineAgreement(name, graph, runs, not problem, same, total, largest, largest_token, tolerance, problem)

    def _best(self, beams: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the words of the best caption up to its end token, and their log probabilities."""
        words = beams["words"][0, 0]
        ended = np.flatnonzero(np.isin(words, self._bundle.search.ends))
        length = int(ended[0]) + 1 if ended.size else len(words)
        return words[:length], beams["log_probabilities"][0, 0, :length]


def _masks(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of all tokens and of two thirds of them, bool (1, N) each."""
    return np.ones((1, tokens), bool), (np.arange(tokens) < max(1, 2 * tokens // 3))[None]
