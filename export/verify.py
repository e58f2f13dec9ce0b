"""Checks of an unfinished bundle: captions and objects are those of torch, and both forms of the captioner agree."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from export.bundle import ExportError
from export.options import ExportOptions
from export.source import Source, caption_by_torch
from export.vision import visual_by
from smart_caption_ros.captioning import Bundle, Captioner
from smart_caption_ros.captioning.bundle import (
    CAPTIONER_GRAPH,
    EVERY_BEAM,
    STATIC_GRAPH,
    VISION_GRAPH,
    WORD_BIAS,
    WORD_GROUPS,
    VisionBundle,
)
from smart_caption_ros.captioning.guidance import WordBiases
from smart_caption_ros.captioning.vision import Vision, grid_boxes
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.engines import Engine, create_engine
from smart_caption_ros.engines.base import Graph
from training.decoding.beam_search import logit_addend
from training.engine.trained_captioner import TrainedCaptioner
from training.models.captioner import Visual
from training.models.eight_bits import rounded_once
from training.vision.backbone import Backbone


@dataclass(frozen=True)
class Agreement:
    """How close the bundle's captions are to torch's."""

    images: int
    identical_captions: int
    largest_log_probability_difference: float
    """Over the words of identical captions, natural logarithm."""
    close_captions: int = 0
    """Other captions that torch finds as good, with the same probabilities; see :func:`compare`."""


def compare(
    trained: TrainedCaptioner,
    images_bgr: np.ndarray,
    found: Sequence[Mapping[str, np.ndarray]],
    visual_of: Callable[[np.ndarray], Visual] | None = None,
    rounding: float = 0.0,
) -> Agreement:
    """Compare a bundle's captions of frames with torch's.

    Args:
        images_bgr: (B, H, W, 3) uint8, of the vision graph's size.
        found: what the bundle's captioner graph gives for each of the frames: ``words`` (1, k, T) int64 and
            ``log_probabilities`` (1, k, T) float32, beams best first.
        visual_of: computes the captioner's input of frames; None: its own backbone does.
        rounding: tolerance of mean log probabilities. A caption other than torch's is close to it if torch gives its
            words the bundle's log probabilities within ``rounding``, and the mean of torch's own caption is within
            twice as much, because both may be off by ``rounding``. 0: no caption is close.
    """
    identical, close, largest = 0, 0, 0.0
    vocabulary = trained.vocabulary
    for image, beams in zip(images_bgr, found, strict=True):
        visual, expected = caption_by_torch(trained, image, visual_of)
        with torch.inference_mode(), rounded_once():
            words, ours = torch.from_numpy(beams["words"][0, 0]), torch.from_numpy(beams["log_probabilities"][0, 0])
            own, theirs = expected.words[0, 0], expected.log_probabilities[0, 0]
            if vocabulary.decode(words.tolist()) == vocabulary.decode(own.tolist()):
                identical += 1
                places = zip(*(vocabulary.word_places(ids.tolist()) for ids in (words, own)), strict=True)
                differences = [float(ours[our].sum() - theirs[their].sum()) for our, their in places]
                largest = max(largest, *np.abs(differences), 0.0)
            elif rounding:
                scored = score_words(trained, visual, words)
                error = float((ours[: len(scored)] - scored).abs().mean())
                gap = abs(float(scored.mean() - theirs[: _length(own)].mean()))
                close += error <= rounding and gap <= 2 * rounding
    return Agreement(len(images_bgr), identical, largest, close)


def score_words(trained: TrainedCaptioner, visual: Visual, words: Tensor) -> Tensor:
    """Compute the log probabilities of the words of a caption, (T,) int64 with padding after the end: (n,) float32 for
    the n before it.
    """
    words = words[: _length(words)]
    before = torch.cat([words.new_tensor([Vocabulary.begin_id]), words[:-1]])
    logits = trained.captioner.decode_captions(before[None, None], trained.captioner.encode(visual))[0, 0].float()
    probabilities = (logits + logit_addend(trained.search, logits.shape[-1])).log_softmax(dim=-1)
    return probabilities.gather(1, words[:, None]).squeeze(1)


def _length(words: Tensor) -> int:
    return int((words != Vocabulary.padding_id).sum())


def compare_forms(bundle: Bundle, engine: Engine, images_bgr: np.ndarray) -> Agreement:
    """Compare the static form of a bundle's captioner with its Loop form.

    ``images_bgr``: (B, H, W, 3) uint8, of the vision graph's size.
    """
    assert bundle.static_graph is not None

    def load(name: str) -> Graph:
        return engine.load(bundle.path / name, bundle.read_graph(name))

    # One graph at a time is in memory: together those of a large captioner take many gigabytes.
    vision = load(VISION_GRAPH)
    tokens = [vision.run({"image_bgr": image[None]})["tokens"] for image in images_bgr]
    del vision
    biases = WordBiases.none(1, len(bundle.vocabulary))
    inputs: dict[str, np.ndarray] = {
        "token_boxes": grid_boxes(*bundle.grid, bundle.tokens_before_grid)[None],
        WORD_BIAS: biases.bias,
        WORD_GROUPS: biases.groups,
        EVERY_BEAM: np.zeros(1, bool),
    }

    def decoded(name: str) -> list[dict[str, np.ndarray]]:
        graph = load(name)
        every = [{**inputs, "tokens": one, "token_mask": np.ones(one.shape[:2], dtype=bool)} for one in tokens]
        return [graph.run({name: given[name] for name in graph.input_names}) for given in every]

    identical, largest = 0, 0.0
    for expected, found in zip(decoded(CAPTIONER_GRAPH), decoded(STATIC_GRAPH), strict=True):
        steps = expected["words"].shape[2]
        words = found["words"][0, 0]
        if np.array_equal(words[:steps], expected["words"][0, 0]) and not words[steps:].any():
            identical += 1
            difference = found["log_probabilities"][0, 0, :steps] - expected["log_probabilities"][0, 0]
            largest = max(largest, float(np.abs(difference).max()))
    return Agreement(len(images_bgr), identical, largest)


def compare_detections(trained: TrainedCaptioner, vision: Graph, images_bgr: np.ndarray) -> tuple[float, float]:
    """Compare the objects that a vision graph finds in frames of its size, (B, H, W, 3) uint8, with torch's.

    Returns:
        Largest difference of a class score; and of a box's edge, in fractions of the frame, where a class has a score
        of at least 0.05.
    """
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
    return scores, edges


def compare_tokens(bundle: VisionBundle, backbone: Backbone, photographs: Sequence[np.ndarray]) -> tuple[float, float]:
    """Compare the tokens of photographs with torch's, one photograph at a time.

    Returns:
        Root mean square of the difference, a share of the root mean square of torch's; and the lowest mean over a
        photograph of the cosine between its tokens and torch's.
    """
    vision = Vision(bundle, create_engine(CPU))
    squares, reference, similarities = 0.0, 0.0, []
    for photograph in photographs:
        frame = vision.preprocess(photograph)
        found = vision.tokens(frame)
        with torch.inference_mode():
            expected = backbone.tokens(torch.from_numpy(frame)).numpy()
        squares += float(np.square(found - expected).sum())
        reference += float(np.square(expected).sum())
        lengths = np.linalg.norm(found, axis=-1) * np.linalg.norm(expected, axis=-1)
        similarities.append(float(((found * expected).sum(axis=-1) / np.maximum(lengths, 1e-9)).mean()))
    return (squares / reference) ** 0.5, min(similarities)


CPU = "onnxruntime-cpu"
MINIMUM_AGREEMENT = {"float32": 0.99, "float16": 0.9, "int8": 0.9}
"""Share of captions that must be torch's, by precision. A tie between two beams may fall either way. In float16 the
visual tokens differ as well. In 8 bits, where an input lies in the middle of two of its 256 values, the last bit of a
sum decides which of them it becomes, and then between beams of nearly the same score: of 400 captions 379 were
torch's. Others that are close to torch's (:data:`ROUNDING`) count as well."""
ROUNDING = 0.05
"""Largest difference between the log probabilities of a caption's words, in the mean, that rounding to 8 bits explains.
The last bit of a sum decides which value an input becomes. Where words are nearly as probable as each other, as with
random weights of Florence-2-base, torch itself then says another caption, with log probabilities within 0.007."""
FORMS_AGREEMENT = {"float32": 0.99, "float16": 0.9, "int8": 0.7}
"""Share of captions that both forms give alike, by precision. The static form of a captioner in 8 bits has its weights,
but its products take their inputs as they are."""
DETECTION_TOLERANCE = {"float32": 0.005, "float16": 0.05, "int8": 0.005}
"""Largest difference of class scores and of box edges (fractions of the frame) from torch's, by precision."""
LARGEST_ERROR = {"float32": 0.01, "float16": 0.05, "int8": 0.3}
"""Largest error of the tokens of photographs, a share of their root mean square, by precision."""
_STATIC_IMAGES = 10  # to compare the two forms on; the static one decodes each to the longest length


def check_of(source: Source, options: ExportOptions) -> Callable[[Bundle], None]:
    """Return the check that :func:`export.bundle.write_bundle` calls with the unfinished bundle. It prints the
    differences, and raises ExportError if the bundle disagrees with torch.
    """
    images = source.frames
    minimum = MINIMUM_AGREEMENT["int8" if source.trained.eight_bits else options.precision]

    def check_tokens(bundle: Bundle) -> None:
        assert source.trained.backbone is not None
        error, similarity = compare_tokens(bundle, source.trained.backbone, source.photographs)
        print(f"visual tokens: {error:.1%} of their size from torch's, cosine at least {similarity:.4f}")
        if not error <= LARGEST_ERROR[options.precision]:
            raise ExportError("the vision graph does not compute what torch computes; no bundle was written")

    def check_captions(bundle: Bundle) -> None:
        robot = Captioner(bundle, create_engine(CPU))
        found = [
            robot.decode(robot.visual_tokens(photograph))
            for photograph in tqdm(source.photographs, desc="captions", unit="image")
        ]
        visual = source.visual
        if visual is None and options.precision == "int8":
            check_tokens(bundle)
            visual = visual_by(bundle)  # whose layers may be in 8 bits too
        rounding = ROUNDING if source.trained.eight_bits else 0.0
        agreement = compare(source.trained, images, found, visual, rounding)
        print(
            f"torch and {robot.engine}: {agreement.identical_captions} of {agreement.images} captions of "
            f"{source.photographs_description} identical, "
            f"log probabilities within {agreement.largest_log_probability_difference:.1e}"
        )
        if agreement.close_captions:
            print(f"{agreement.close_captions} others are as good: torch gives their words the same log probabilities")
        if options.rounded:
            said = [source.trained.vocabulary.decode(beams["words"][0, 0].tolist()) for beams in found]
            same = sum(map(operator.eq, said, source.unrounded_captions))
            print(f"unrounded weights give the same caption of {same} of {len(said)} photographs")
        if agreement.identical_captions + agreement.close_captions < minimum * agreement.images:
            raise ExportError("the exported graphs do not say what torch says; no bundle was written")

    def check_objects(bundle: Bundle) -> None:
        vision = create_engine(CPU).load(bundle.path / VISION_GRAPH, bundle.read_graph(VISION_GRAPH))
        scores, edges = compare_detections(source.trained, vision, images)
        print(f"objects: class scores within {scores:.1e} of torch's, boxes within {edges:.1e}")
        if max(scores, edges) > DETECTION_TOLERANCE[options.precision]:
            raise ExportError("the exported graph does not find what torch finds; no bundle was written")

    def check_forms(bundle: Bundle) -> None:
        forms = compare_forms(bundle, create_engine(CPU), images[:_STATIC_IMAGES])
        print(
            f"static and Loop form: {forms.identical_captions} of {forms.images} captions identical, "
            f"log probabilities within {forms.largest_log_probability_difference:.1e}"
        )
        if forms.identical_captions < FORMS_AGREEMENT[options.precision] * forms.images:
            raise ExportError("the static form does not say what the Loop form says; no bundle was written")

    def check(bundle: Bundle) -> None:
        check_captions(bundle)
        if source.detects:
            check_objects(bundle)
        if bundle.static_graph is not None:
            check_forms(bundle)

    return check
