"""One object does the work: a frame in, a caption with its evidence out."""

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPHS, DETECTOR_GRAPH, VISION_GRAPH, VISION_LAYOUT, Bundle
from smart_caption_ros.captioning.errors import BundleError
from smart_caption_ros.captioning.vision import Vision
from smart_caption_ros.captioning.vision_detector import VisionDetector
from smart_caption_ros.captioning.vocabulary import join_words
from smart_caption_ros.detection.boxes import Box, DetectedObject
from smart_caption_ros.detection.detector import MINIMUM_SCORE, Detector
from smart_caption_ros.engines import AUTO, Engine, load_with, run_batch
from smart_caption_ros.engines.errors import EngineError
from smart_caption_ros.imaging import check_image

NO_DETECTOR = "none"
"""In place of a detector's file: no objects, even where the bundle can find them."""


@dataclass(frozen=True)
class Word:
    """A word of a caption and what speaks for it."""

    text: str
    log_probability: float
    """Natural logarithm, given the words before it."""
    box_xyxy: Box
    """The part of the frame attended to most when it was chosen; pixels, exclusive at the right and bottom."""


@dataclass(frozen=True)
class Alternative:
    """Another caption that beam search had finished (or cut at the longest length) when the best one was."""

    text: str
    score: float


@dataclass(frozen=True)
class Timing:
    """Where the time of a frame went."""

    preprocess_s: float
    vision_s: float
    """The vision graph, and the detector where there is one."""
    decode_s: float
    total_s: float
    steps: int
    """Words that beam search decoded, the end token included."""


@dataclass(frozen=True)
class Caption:
    """What the robot says of a frame."""

    text: str
    """The sentence, lower case, without a full stop; empty when the model has nothing to say."""
    words: tuple[Word, ...]
    """The sentence's tokens: a clitic such as ``'s`` is a word of its own."""
    score: float
    """Sum of the log probabilities of the words and of the end token: what beam search ranks by."""
    confidence: float
    """Geometric mean of the same probabilities, in [0, 1]: comparable between captions of any length."""
    alternatives: tuple[Alternative, ...]
    """Best first."""
    timing: Timing
    image_size: tuple[int, int]
    """Width and height of the frame, pixels."""
    model: str
    engine: str
    objects: tuple[DetectedObject, ...] = field(default=())
    """What the detector found, surest first; empty without a detector."""


class Captioner:
    """Captions frames with the graphs of a bundle. Not thread-safe: give each thread one, or lock."""

    def __init__(
        self,
        bundle: Bundle,
        engine: Engine,
        graph: str | None = None,
        *,
        detector: Detector | None = None,
        detects: bool = True,
        minimum_score: float | None = None,
    ) -> None:
        """
        Args:
            bundle: the model.
            engine: runs it.
            graph: the bundle's file with the captioner; None takes the one that suits the engine best.
            detector: finds the objects; None takes the bundle's own, if it has one.
            detects: False leaves objects alone, even where the bundle has a detector.
            minimum_score: of an object, for the bundle's own detector; None takes what the bundle says of it.

        Raises:
            EngineError: a graph cannot be loaded, or the bundle has none that the engine can run.
            BundleError: a graph is not of the kind that a bundle holds.
            DetectorError: the bundle's detector is of no layout that is known here.
        """
        self.bundle = bundle
        self.model = bundle.name
        self.engine = engine.description
        self.graph = graph or _suitable_graph(bundle, engine)
        self._vision = Vision(bundle, engine)
        self._graph = engine.load(bundle.path / self.graph)
        modes = {VISION_GRAPH: self._vision.mode, self.graph: self._graph.mode}
        self.engine_choice = "; ".join([self.engine, *(f"{name}: {mode}" for name, mode in modes.items() if mode)])
        """What runs the graphs and how; from :meth:`from_bundle` also why."""
        wanted = {"words", "log_probabilities", "scores", "attention"}
        if self._graph.input_names != ("tokens", "token_mask") or not wanted <= set(self._graph.output_names):
            raise BundleError(
                f"{bundle.path / self.graph} maps {self._graph.input_names} to {self._graph.output_names} "
                f"instead of tokens and token_mask to {', '.join(sorted(wanted))}; export the bundle again"
            )
        self.detector: Detector | VisionDetector | None = detector
        """What finds the objects; None where nothing does."""
        if detector is None and detects:
            self.detector = _detector_of(bundle, engine, self._vision, minimum_score)

    @classmethod
    def from_bundle(
        cls,
        path: str | os.PathLike[str] | None = None,
        engine: str = AUTO,
        threads: int | None = None,
        detector: str | os.PathLike[str] | None = None,
        minimum_score: float | None = None,
    ) -> "Captioner":
        """Load a bundle and an engine to run it.

        Args:
            path: folder of the bundle; None takes the one that ships with the package.
            engine: one of :data:`smart_caption_ros.engines.ENGINE_NAMES`; ``auto`` takes the fastest
                that works here.
            threads: CPU threads; None leaves the choice to the engine.
            detector: an ONNX detector to find the objects with, see :class:`Detector`; None takes the bundle's own,
                if it has one, and :data:`NO_DETECTOR` none at all.
            minimum_score: of an object, 0 to 1; None takes what the bundle says of its detector, or
                :data:`smart_caption_ros.detection.detector.MINIMUM_SCORE` for another one.

        Raises:
            BundleError: the bundle is missing or wrong.
            DetectorError: the detector is missing, or of no layout that is known here.
            EngineError: the engine is unknown or does not work here.
        """
        bundle = Bundle.load(path)

        def load(created: Engine) -> "Captioner":
            if detector is None or os.fspath(detector) == NO_DETECTOR:
                return cls(bundle, created, detects=detector is None, minimum_score=minimum_score)
            score = MINIMUM_SCORE if minimum_score is None else minimum_score
            return cls(bundle, created, detector=Detector(Path(detector), created, minimum_score=score))

        captioner, reason = load_with(engine, threads, load)
        captioner.engine_choice = f"{captioner.engine_choice}; {reason}"
        return captioner

    def caption(self, image_bgr: np.ndarray) -> Caption:
        """Say what a frame shows.

        Args:
            image_bgr: (H, W, 3) uint8, of any size.

        Raises:
            ValueError: ``image_bgr`` is something else.
            EngineError: the engine failed.
        """
        check_image(image_bgr)
        height, width = image_bgr.shape[:2]
        started = time.perf_counter()
        preprocessed = self._vision.preprocess(image_bgr)
        looking = time.perf_counter()
        seen = self._vision.run(preprocessed)
        objects: tuple[DetectedObject, ...] = ()
        if isinstance(self.detector, VisionDetector):
            objects = self.detector.objects(seen, width, height)
        elif self.detector is not None:
            objects = self.detector.detect(image_bgr)
        decoding = time.perf_counter()
        found = self.decode(seen.tokens)
        finished = time.perf_counter()
        words, log_probabilities = found["words"][0], found["log_probabilities"][0]
        boxes = self._vision.boxes(width, height)[found["attention"][0, 0].argmax(axis=-1)]
        best = self._text_tokens(words[0])
        score = float(found["scores"][0, 0])
        decoded = self._length(words[0])
        return Caption(
            text=join_words(best),
            words=tuple(
                Word(text, float(log_probability), (float(x1), float(y1), float(x2), float(y2)))
                for text, log_probability, (x1, y1, x2, y2) in zip(best, log_probabilities[0], boxes, strict=False)
            ),
            score=score,
            confidence=math.exp(score / decoded),
            alternatives=tuple(
                Alternative(join_words(self._text_tokens(beam)), float(beam_score))
                for beam, beam_score in zip(words[1:], found["scores"][0, 1:], strict=True)
                if self.bundle.vocabulary.end_id in beam or len(beam) == self.bundle.max_words
            ),
            timing=Timing(
                looking - started, decoding - looking, finished - decoding, finished - started, words.shape[1]
            ),
            image_size=(width, height),
            model=self.model,
            engine=self.engine,
            objects=objects,
        )

    def visual_tokens(self, image_bgr: np.ndarray) -> np.ndarray:
        """What the vision graph makes of a frame, (1, N, token width) float32; arguments as :meth:`caption`."""
        check_image(image_bgr)
        return self._vision.tokens(self._vision.preprocess(image_bgr))

    def decode(self, tokens: np.ndarray, token_mask: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Beam search over visual tokens, the captioner graph as it is.

        Args:
            tokens: (B, N, token width) float32.
            token_mask: (B, N) bool, True where a token is real; None when all are.

        Returns:
            ``words`` (B, k, T) int64, ``log_probabilities`` (B, k, T), ``scores`` (B, k) and ``attention``
            (B, k, T, N) float32, beams best first.
        """
        if token_mask is None:
            token_mask = np.ones(tokens.shape[:2], dtype=bool)
        return run_batch(self._graph, {"tokens": tokens, "token_mask": token_mask})

    def caption_batch(self, images_bgr: Sequence[np.ndarray]) -> list[str]:
        """The sentences of several frames at once, for evaluation; the same sentences as :meth:`caption` gives."""
        for image_bgr in images_bgr:
            check_image(image_bgr)
        preprocessed = np.concatenate([self._vision.preprocess(image_bgr) for image_bgr in images_bgr])
        found = self.decode(self._vision.tokens(preprocessed))
        return [join_words(self._text_tokens(words)) for words in found["words"][:, 0]]

    def warm_up(self) -> None:
        """Caption a grey frame, so that the first real one is not the slow one."""
        self.caption(np.full((self.bundle.preprocessing.height, self.bundle.preprocessing.width, 3), 127, np.uint8))

    def _text_tokens(self, ids: np.ndarray) -> list[str]:
        return self.bundle.vocabulary.decode(ids.tolist())

    def _length(self, ids: np.ndarray) -> int:
        """Decoded words of a beam, the end token included."""
        ended = np.flatnonzero(ids == self.bundle.vocabulary.end_id)
        return int(ended[0]) + 1 if ended.size else len(ids)


def _suitable_graph(bundle: Bundle, engine: Engine) -> str:
    names = [CAPTIONER_GRAPHS[form] for form in engine.graph_forms]
    for name in names:
        if name in bundle.manifest["files"]:
            return name
    raise EngineError(
        f"{engine.description} runs {' or '.join(names)}, which {bundle.path} lacks; "
        "export the bundle again, or choose the engine onnxruntime-cpu"
    )


def _detector_of(
    bundle: Bundle, engine: Engine, vision: Vision, minimum_score: float | None
) -> Detector | VisionDetector | None:
    """The detector that a bundle carries; None where it carries none."""
    facts = bundle.detector
    if facts is None:
        return None
    if facts.layout == VISION_LAYOUT:
        return VisionDetector(bundle, vision, minimum_score)
    score = facts.minimum_score if minimum_score is None else minimum_score
    detector = Detector(bundle.path / DETECTOR_GRAPH, engine, minimum_score=score, class_names=bundle.class_names)
    if detector.layout != facts.layout:
        raise BundleError(
            f"{detector.path} has the layout {detector.layout} instead of {facts.layout}, which the manifest says; "
            "export the bundle again"
        )
    return detector
