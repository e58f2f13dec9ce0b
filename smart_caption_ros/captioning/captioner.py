"""The captioner of the robot side: computes a caption, its evidence and its timing from a frame."""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from smart_caption_ros.captioning.bundle import (
    CAPTIONER_GRAPHS,
    DETECTOR_GRAPH,
    EVERY_BEAM,
    LOOP_INPUTS,
    STATIC_GRAPH,
    VISION_GRAPH,
    VISION_LAYOUT,
    WORD_BIAS,
    WORD_GROUPS,
    Bundle,
    BundleError,
)
from smart_caption_ros.captioning.calibration import caption_features
from smart_caption_ros.captioning.guidance import Guide, WordBiases
from smart_caption_ros.captioning.vision import Vision, VisionDetector, VisionOutput, grid_boxes
from smart_caption_ros.detection.boxes import Box, DetectedObject
from smart_caption_ros.detection.detections import ClassScores, DetectorOutput
from smart_caption_ros.detection.detector import MINIMUM_SCORE, Detector
from smart_caption_ros.engines import AUTO, Engine, Graph, load_with, run_batch
from smart_caption_ros.engines.base import EngineError
from smart_caption_ros.imaging import check_image
from smart_caption_ros.imaging.detail import detail_of

NO_DETECTOR = "none"
"""Value of ``detector`` that switches object detection off."""
_NO_DETECTIONS = DetectorOutput((), ClassScores.of_objects(()))


@dataclass(frozen=True)
class Word:
    """A word of a caption with its probability and its box."""

    text: str
    log_probability: float
    """Natural logarithm of the word's probability, given the preceding words; the sum over its pieces."""
    box_xyxy: Box
    """Grid cell with the highest attention, in the mean over the word's pieces; pixels of the frame, exclusive at the
    right and bottom. NaN where a token that stands for no cell, such as a class token, has more."""


@dataclass(frozen=True)
class Alternative:
    """A caption of a lower beam that had ended, or had the maximum length, when beam search ended."""

    text: str
    score: float
    """Sum of the log probabilities, as :attr:`Caption.score`."""


@dataclass(frozen=True)
class Timing:
    """Durations of the steps of captioning a frame, seconds."""

    preprocess_s: float
    vision_s: float
    """Vision graph, and the detector where there is one."""
    decode_s: float
    total_s: float
    steps: int
    """Decoding steps of beam search, one for each word, or piece of one, and for the end token."""


@dataclass(frozen=True)
class Caption:
    """The caption of a frame."""

    text: str
    """The sentence, lower case, without a full stop; empty where the model decoded no word."""
    words: tuple[Word, ...]
    """The tokens of the sentence; a clitic such as ``'s`` is a separate word."""
    score: float
    """Sum of the log probabilities of the words and of the end token. Beam search ranks by it, with a length penalty by
    score / length ** length_penalty."""
    confidence: float
    """Geometric mean of the same probabilities, from 0 to 1; comparable between captions of different length."""
    alternatives: tuple[Alternative, ...]
    """Captions of the other beams, best first."""
    timing: Timing
    image_size: tuple[int, int]
    """Width and height of the frame, pixels."""
    model: str
    """Name of the bundle."""
    engine: str
    objects: tuple[DetectedObject, ...] = ()
    """Detected objects by descending score; empty without a detector."""
    calibrated_confidence: float | None = None
    """Share of the captions with the same features that is true, 0 to 1; None where the bundle has no
    :attr:`Bundle.calibration`, and for an empty caption."""
    shows_detail: bool = True
    """False where the frame has less detail than :attr:`Bundle.min_detail`, so that the sentence is a guess."""

    def resized(self, width: int, height: int) -> "Caption":
        """Return the caption of the same frame at another size in pixels, with its boxes scaled."""
        scale = np.array([width, height] * 2) / np.maximum(self.image_size * 2, 1)  # the size may be unknown, 0

        def resized(box_xyxy: Box) -> Box:
            x1, y1, x2, y2 = (scale * box_xyxy).tolist()
            return x1, y1, x2, y2

        return replace(
            self,
            words=tuple(replace(word, box_xyxy=resized(word.box_xyxy)) for word in self.words),
            objects=tuple(replace(item, box_xyxy=resized(item.box_xyxy)) for item in self.objects),
            image_size=(width, height),
        )


class Captioner:
    """Captions frames with the graphs of a bundle. Not thread-safe: use one for each thread, or a lock."""

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
            graph: file of the captioner graph in the bundle; None takes the form that the engine prefers.
            detector: detects objects; None takes the detector of the bundle, if there is one.
            minimum_score: lowest score of an object of the bundle's detector; None takes that of the manifest.

        Raises:
            EngineError: a graph cannot be loaded, or the bundle has no form that the engine can run.
            BundleError: the inputs or outputs of a graph differ from those of the manifest.
            DetectorError: the layout of the bundle's detector is unknown.
        """
        self.bundle = bundle
        self.model = bundle.name
        self.engine = engine.description
        self.graph = graph or _suitable_graph(bundle, engine)
        self._vision = Vision(bundle, engine)
        self._graph = engine.load(bundle.path / self.graph, bundle.read_graph(self.graph))
        modes = {VISION_GRAPH: self._vision.mode, self.graph: self._graph.mode}
        self.engine_choice = "; ".join([self.engine, *(f"{name}: {mode}" for name, mode in modes.items() if mode)])
        """Engine and mode of each graph; from :meth:`from_bundle` also the reason of the choice."""
        self.engine_fallbacks: tuple[str, ...] = ()
        """From :meth:`from_bundle` with ``auto``: faster engines that could not load the graphs, with the reasons."""
        _check_graph(bundle, self.graph, self._graph)
        self._guide: Guide | None = None
        self.detector: Detector | VisionDetector | None = detector
        """Detects the objects; None where detection is off or the bundle has no detector."""
        if detector is None and detects:
            self.detector = _detector_of(bundle, engine, minimum_score)

    @classmethod
    def from_bundle(
        cls,
        path: str | os.PathLike[str] | None = None,
        engine: str = AUTO,
        threads: int | None = None,
        detector: str | os.PathLike[str] | None = None,
        minimum_score: float | None = None,
        *,
        spinning: bool = True,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> "Captioner":
        """Load a bundle and an engine to run it.

        Args:
            path: folder of the bundle; None takes the one that ships with the package.
            engine: one of :data:`smart_caption_ros.engines.ENGINE_NAMES`; ``auto`` takes the fastest that works.
            threads: CPU threads of the engine and of OpenCV, which work one after the other; OpenCV's number is that of
                the whole process. None leaves the choice to both.
            detector: file of an ONNX detector, see :class:`Detector`; None takes the detector of the bundle, if there
                is one; :data:`NO_DETECTOR` switches detection off.
            minimum_score: lowest score of an object, 0 to 1; None takes that of the bundle for its detector, and
                :data:`smart_caption_ros.detection.detector.MINIMUM_SCORE` for another one.
            spinning, is_cancelled: as for :func:`smart_caption_ros.engines.load_with`.

        Raises:
            BundleError: the bundle is missing or wrong.
            DetectorError: the detector is missing, or its layout is unknown.
            EngineError: the engine is unknown or does not work on this machine.
            BuildCancelledError: the build of an engine was cancelled.
        """
        bundle = Bundle.load(path)

        def load(created: Engine) -> "Captioner":
            if detector is None or os.fspath(detector) == NO_DETECTOR:
                return cls(bundle, created, detects=detector is None, minimum_score=minimum_score)
            score = MINIMUM_SCORE if minimum_score is None else minimum_score
            return cls(bundle, created, detector=Detector(Path(detector), created, minimum_score=score))

        if threads is not None:
            cv2.setNumThreads(threads)
        captioner, reason, fallbacks = load_with(engine, threads, load, spinning=spinning, is_cancelled=is_cancelled)
        captioner.engine_choice = "; ".join([captioner.engine_choice, reason, *fallbacks])
        captioner.engine_fallbacks = fallbacks
        return captioner

    @property
    def guide(self) -> Guide | None:
        """Lets detected objects guide the search for words, such as an ObjectsGuide; None where it is off.

        Setting it raises BundleError where the bundle has no inputs for a guide.
        """
        return self._guide

    @guide.setter
    def guide(self, guide: Guide | None) -> None:
        if guide is None:
            self._guide = None
            return
        if not self.bundle.can_be_guided:
            raise BundleError(
                f"{self.bundle.path}: objects cannot guide this bundle, whose captioner has no input {WORD_BIAS}; set "
                "objects_guide to off, or export the bundle again"
            )
        # The first call looks up the words of the vocabulary, which is slow.
        guide.word_biases(_NO_DETECTIONS.class_scores, self.bundle.vocabulary)
        self._guide = guide

    def caption(self, image_bgr: np.ndarray, objects: Sequence[DetectedObject] | None = None) -> Caption:
        """Caption a frame.

        Args:
            image_bgr: (H, W, 3) uint8, of any size.
            objects: for the guide, in place of those that the captioner's own detector finds; they do not become
                :attr:`Caption.objects`.

        Raises:
            ValueError: ``image_bgr`` has another type, dtype or shape.
            EngineError: the engine failed.
        """
        check_image(image_bgr)
        height, width = image_bgr.shape[:2]
        started = time.perf_counter()
        preprocessed = self._vision.preprocess(image_bgr)
        preprocessing_ended = time.perf_counter()
        output = self._vision.run(preprocessed)
        detected = self._detect(image_bgr, output)
        vision_ended = time.perf_counter()
        biases = None
        if self._guide is not None:
            class_scores = detected.class_scores if objects is None else ClassScores.of_objects(objects)
            biases = self._guide.word_biases(class_scores, self.bundle.vocabulary)
        beams = self.decode(output.tokens, image_size=_sizes([image_bgr]), biases=biases)
        ended = time.perf_counter()
        words, log_probabilities = beams["words"][0], beams["log_probabilities"][0, 0]
        attention, boxes = beams["attention"][0, 0], self._vision.boxes(width, height)
        vocabulary, ids = self.bundle.vocabulary, words[0].tolist()
        score = float(beams["scores"][0, 0])
        places, text = vocabulary.word_places(ids), vocabulary.sentence(ids)
        log_confidence = score / max(1, len(places) + int(vocabulary.end_id in ids))
        detail, calibrated = detail_of(preprocessed[0]), None
        if text and self.bundle.calibration is not None:
            word_biases = biases.bias[0, ids] if biases is not None else np.zeros(len(ids), np.float32)
            calibrated = self.bundle.calibration(caption_features(log_confidence, word_biases, detail))
        return Caption(
            text=text,
            words=tuple(
                Word(word, float(log_probabilities[pieces].sum()), _box(boxes, attention[pieces]))
                for word, pieces in zip(vocabulary.decode(ids), places, strict=True)
            ),
            score=score,
            confidence=math.exp(log_confidence),
            alternatives=self._alternatives(words[1:], beams["scores"][0, 1:], text),
            timing=Timing(
                preprocess_s=preprocessing_ended - started,
                vision_s=vision_ended - preprocessing_ended,
                decode_s=ended - vision_ended,
                total_s=ended - started,
                steps=words.shape[1],
            ),
            image_size=(width, height),
            model=self.model,
            engine=self.engine,
            objects=detected.objects,
            calibrated_confidence=calibrated,
            shows_detail=detail >= self.bundle.min_detail,
        )

    def visual_tokens(self, image_bgr: np.ndarray) -> np.ndarray:
        """Compute the visual tokens of a frame, (1, N, token width) float32; arguments as :meth:`caption`."""
        check_image(image_bgr)
        return self._vision.tokens(self._vision.preprocess(image_bgr))

    def decode(
        self,
        tokens: np.ndarray,
        token_mask: np.ndarray | None = None,
        image_size: np.ndarray | None = None,
        biases: WordBiases | None = None,
    ) -> dict[str, np.ndarray]:
        """Run the captioner graph: beam search over visual tokens.

        Args:
            tokens: (B, N, token width) float32, the tokens of the grid.
            token_mask: (B, N) bool, True where a token is real; None when all are.
            image_size: (B, 2) float32, width and height of the frames in pixels; None takes the size of the vision
                graph's input. Read only by graphs that have this input.

        Returns:
            ``words`` (B, k, T) int64, ``log_probabilities`` (B, k, T), ``scores`` (B, k) and ``attention``
            (B, k, T, N) float32, beams best first.

        Raises:
            EngineError: the engine failed.
        """
        bundle, batch = self.bundle, len(tokens)
        biases = biases or WordBiases.none(batch, len(bundle.vocabulary))
        if image_size is None:
            image_size = np.tile(np.array(bundle.preprocessing.size, np.float32), (batch, 1))
        given = {
            "tokens": tokens,
            "token_mask": np.ones(tokens.shape[:2], dtype=bool) if token_mask is None else token_mask,
            "token_boxes": np.tile(grid_boxes(*bundle.grid, bundle.tokens_before_grid), (batch, 1, 1)),
            "image_size": image_size,
            WORD_BIAS: biases.bias,
            WORD_GROUPS: biases.groups,
            EVERY_BEAM: np.zeros(batch, bool),  # the search ends with the best beam
        }
        return run_batch(self._graph, {name: given[name] for name in self._graph.input_names})

    def caption_batch(self, images_bgr: Sequence[np.ndarray]) -> list[str]:
        """Caption several frames, (H, W, 3) uint8 each, for evaluation; the sentences are those of :meth:`caption`.

        Raises:
            ValueError: a frame has another type, dtype or shape.
            EngineError: the engine failed.
        """
        for image_bgr in images_bgr:
            check_image(image_bgr)
        preprocessed = np.concatenate([self._vision.preprocess(image_bgr) for image_bgr in images_bgr])
        output = self._vision.run(preprocessed)
        biases = None
        if self._guide is not None:
            detected = [self._detect(image, output.frame(place)) for place, image in enumerate(images_bgr)]
            biases = WordBiases.join(
                [self._guide.word_biases(detections.class_scores, self.bundle.vocabulary) for detections in detected]
            )
        beams = self.decode(output.tokens, image_size=_sizes(images_bgr), biases=biases)
        return [self.bundle.vocabulary.sentence(words.tolist()) for words in beams["words"][:, 0]]

    def warm_up(self) -> None:
        """Caption a grey frame, because the first run of a graph is slow."""
        self.caption(np.full((self.bundle.preprocessing.height, self.bundle.preprocessing.width, 3), 127, np.uint8))

    def _detect(self, image_bgr: np.ndarray, output: VisionOutput) -> DetectorOutput:
        """Detect the objects of a frame; ``output`` is that of the vision graph for this frame."""
        if isinstance(self.detector, VisionDetector):
            height, width = image_bgr.shape[:2]
            return self.detector.detections(output, width, height)
        return _NO_DETECTIONS if self.detector is None else self.detector.detections(image_bgr)

    def _alternatives(self, beams: np.ndarray, scores: np.ndarray, best: str) -> tuple[Alternative, ...]:
        """Return the captions of the lower beams, (k - 1, T), that have ended, each text once and without ``best``."""
        alternatives: dict[str, Alternative] = {}  # by text: different pieces may spell the same words
        for beam, score in zip(beams, scores, strict=True):
            if np.isin(beam, self.bundle.search.ends).any() or len(beam) == self.bundle.search.max_words:
                text = self.bundle.vocabulary.sentence(beam.tolist())
                alternatives.setdefault(text, Alternative(text, float(score)))
        alternatives.pop(best, None)
        return tuple(alternatives.values())


def _box(boxes: np.ndarray, attention: np.ndarray) -> Box:
    """Return the box of the token with the highest attention, (n, N), in the mean over the n pieces of a word."""
    x1, y1, x2, y2 = boxes[attention.mean(axis=0).argmax()]
    return float(x1), float(y1), float(x2), float(y2)


def _sizes(images_bgr: Sequence[np.ndarray]) -> np.ndarray:
    """Return the width and height of each frame, (B, 2) float32 pixels."""
    return np.array([image_bgr.shape[1::-1] for image_bgr in images_bgr], np.float32)


def _check_graph(bundle: Bundle, name: str, graph: Graph) -> None:
    """Raise BundleError unless the captioner graph has the inputs of the manifest and the outputs of beam search."""
    lacking = LOOP_INPUTS if name == STATIC_GRAPH else ()
    inputs = tuple(name for name in bundle.captioner_inputs if name not in lacking)
    outputs = ("words", "log_probabilities", "scores", "attention")
    if set(graph.input_names) != set(inputs) or not set(outputs) <= set(graph.output_names):
        raise BundleError(
            f"{bundle.path / name} maps {', '.join(graph.input_names)} to {', '.join(graph.output_names)} instead of "
            f"{', '.join(inputs)} to {', '.join(outputs)}; export the bundle again"
        )


def _suitable_graph(bundle: Bundle, engine: Engine) -> str:
    names = [CAPTIONER_GRAPHS[form] for form in engine.graph_forms]
    for name in names:
        if name in bundle.manifest["files"]:
            return name
    raise EngineError(
        f"{engine.description} runs {' or '.join(names)}, which {bundle.path} lacks; "
        "export the bundle again, or choose the engine onnxruntime-cpu"
    )


def _detector_of(bundle: Bundle, engine: Engine, minimum_score: float | None) -> Detector | VisionDetector | None:
    facts = bundle.detector
    if facts is None:
        return None
    if facts.layout == VISION_LAYOUT:
        return VisionDetector(bundle, minimum_score)
    score = facts.minimum_score if minimum_score is None else minimum_score
    detector = Detector(bundle.path / DETECTOR_GRAPH, engine, minimum_score=score, class_names=bundle.class_names)
    if detector.layout != facts.layout:
        raise BundleError(
            f"{detector.path} has the layout {detector.layout} instead of {facts.layout}, which the manifest says; "
            "export the bundle again"
        )
    return detector
