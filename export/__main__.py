"""``python -m export CHECKPOINT BUNDLE``: a trained captioner becomes a bundle, checked against torch."""

import argparse
import copy
import math
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from export.borrowed_vision import lender_of_vision, tokens_of
from export.bundle import ExportError, exporting_commit, write_bundle
from export.loop_form import loop_form
from export.static_form import static_form
from export.passes.float16 import to_float16, write_float16
from export.passes.int8 import IDENTICAL, WEIGHTS, Choice, choose
from export.quality import DevSplit
from export.storage import round_to_float16, round_to_int8, store_as_float16, store_as_int8
from export.trace import TracedCaptioner, trace_captioner
from export.verify import compare, compare_detections, compare_forms, synthetic_images, unsupported_by_tensorrt
from export.vision import GRID, IMAGE_SIZE, export_vision
from smart_caption_ros import __version__
from smart_caption_ros.captioning import Bundle, BundleError, Captioner, EngineError
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, STATIC_GRAPH, VISION_GRAPH, VISION_LAYOUT
from smart_caption_ros.engines import create_engine
from training.data.flickr8k import Flickr8k
from training.datagen.teachers.boxes import PROVENANCE as TEACHERS
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, DataError
from training.models.smart import Smart
from training.paths import data_folder

CPU = "onnxruntime-cpu"
STATIC_CHECKS = 10  # frames to compare the two forms on; the static one takes all steps of each
LAYER_CHECKS = 50  # images to try the layers one by one on
AGREEMENT = {"float32": 0.99, "float16": 0.9, "int8": 0.95}
"""Captions that must be torch's. A tie between two beams may fall either way; more than that is an error of the export.
Lower precision decides more of them another way: in float16 the visual tokens differ as well, and int8 has a bar of
its own (:mod:`export.passes.int8`) on many more images."""

DETECTION_AGREEMENT = {"float32": 0.005, "float16": 0.05, "int8": 0.005}
"""How far scores and boxes of the detector may be from torch's."""
FORMATS = {False: 1, True: 2}
"""By whether the vision graph finds objects: a package that cannot read that shall say so."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m export", description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="best.safetensors of a run")
    parser.add_argument("bundle", type=Path, help="folder to write")
    parser.add_argument("--name", help="name of the bundle (default: the experiment's)")
    parser.add_argument(
        "--precision", choices=tuple(AGREEMENT), default="float32",
        help="of computing: float32 (default), float16 written into the graphs for GPUs, int8 weights for CPUs",
    )  # fmt: skip
    parser.add_argument(
        "--storage",
        choices=("float16", "float32", "int8"),
        default="float16",
        help="of weights that are computed in float32; int8: of the networks that see, the rest as float16",
    )
    parser.add_argument(
        "--int8-weights", choices=tuple(WEIGHTS), default="u8", help="8 bits unsigned, 7 or 8 bits signed"
    )
    parser.add_argument("--beam-size", type=int, default=5, choices=range(1, 11), metavar="1..10")
    parser.add_argument(
        "--vision-from",
        type=Path,
        metavar="BUNDLE",
        help="of a captioner of stored features: the bundle that made them",
    )
    parser.add_argument("--max-words", type=int, help="longest caption, end token included (default: the experiment's)")
    parser.add_argument("--no-detector", action="store_true", help="leave out the objects that the backbone finds")
    parser.add_argument(
        "--detector-score", type=float, default=0.3, help="below which objects are left out (default: %(default)s)"
    )
    parser.add_argument("--no-static", action="store_true", help="leave out the form for TensorRT and CUDA graphs")
    parser.add_argument("--replace", action="store_true", help="write over an existing bundle")
    parser.add_argument("--check-images", type=int, default=100, help="dev photographs to compare with torch")
    arguments = parser.parse_args()
    try:
        run(arguments)
    except (BundleError, CheckpointError, EngineError, ExportError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def run(arguments: argparse.Namespace) -> None:
    """Export, check, write.

    Raises:
        ExportError: the bundle cannot be written, or says something else than torch.
    """
    if not 0 <= arguments.detector_score <= 1:
        raise ExportError(f"--detector-score must lie between 0 and 1, not {arguments.detector_score}")
    trained = TrainedCaptioner.load(arguments.checkpoint)
    detects = trained.backbone is not None and bool(trained.backbone.class_names) and not arguments.no_detector
    lender = lender_of_vision(trained, arguments.vision_from)
    tokens = tokens_of(lender) if lender else None
    exact = copy.deepcopy(trained)
    halves = arguments.storage != "float32" or arguments.precision == "float16"
    eighths = arguments.storage == "int8" and arguments.precision != "float16"
    if halves:
        # Rounded first, so that what is compared with torch, scored and shipped is one and the same model.
        round_to_float16(trained.captioner)
        if trained.backbone is not None:
            round_to_float16(trained.backbone)
            if eighths:
                round_to_int8(trained.backbone.trainable)
    max_words = longest_caption(trained, arguments.max_words)
    vision = vision_of(trained, lender, detects)
    dev = dev_split(trained, vision) if arguments.precision == "int8" else None
    assert isinstance(trained.captioner, Smart)
    pieces = trace_captioner(trained.captioner, arguments.beam_size)
    choice = None
    if arguments.precision == "float16":
        if lender is None:
            vision, _ = write_float16(vision)
        pieces = to_float16(pieces)
    elif dev is not None:
        choice = choose_layers(pieces, dev, max_words, arguments.int8_weights)
        pieces = choice.pieces
    facts = describe(trained, arguments.name or trained.record["name"], arguments.beam_size, max_words, arguments)
    facts |= describe_vision(trained, lender, vision, facts["architecture"])
    facts |= describe_detector(trained, lender, arguments.detector_score if detects else None)
    if choice is not None:
        facts["precision"]["int8"] = choice.report()
    graphs = {VISION_GRAPH: vision, CAPTIONER_GRAPH: loop_form(pieces, max_words)}
    if arguments.precision != "int8" and not arguments.no_static:
        graphs[STATIC_GRAPH] = static_form(pieces, max_words, facts["tokens"]["rows"] * facts["tokens"]["columns"])
        if reasons := unsupported_by_tensorrt(graphs[STATIC_GRAPH]) + unsupported_by_tensorrt(vision, static=False):
            raise ExportError(f"TensorRT cannot run the graphs: {reasons[0]} ({len(reasons)} reasons in all)")
    if halves:
        for name, graph in graphs.items():
            if lender is None or name != VISION_GRAPH:  # a borrowed graph stays as it is
                if eighths:
                    store_as_int8(graph)
                store_as_float16(graph)
    images, what = check_images(arguments.check_images)

    def says_what_torch_says(bundle: Bundle) -> None:
        engine = create_engine(CPU)
        robot = Captioner(bundle, engine)
        captions = [robot.caption(image) for image in images]
        agreement = compare(trained, images, captions, bundle.beam_size, bundle.max_words, tokens)
        print(
            f"torch and {robot.engine}: {agreement.identical_captions} of {agreement.images} captions of {what} "
            f"identical, log probabilities within {agreement.largest_log_probability_difference:.1e}"
        )
        if halves:
            unrounded = compare(exact, images, captions, bundle.beam_size, bundle.max_words, tokens)
            print(f"unrounded weights give {unrounded.identical_captions} of {unrounded.images} of the same captions")
        if agreement.identical_captions < AGREEMENT[arguments.precision] * agreement.images:
            raise ExportError("the exported graphs do not say what torch says; no bundle was written")
        if detects:
            difference = compare_detections(trained, engine.load(bundle.path / VISION_GRAPH), images)
            print(f"objects: class scores within {difference.score:.1e} of torch's, boxes within {difference.box:.1e}")
            if max(difference) > DETECTION_AGREEMENT[arguments.precision]:
                raise ExportError("the exported graph does not find what torch finds; no bundle was written")
        if bundle.static_graph is not None:
            forms = compare_forms(bundle, engine, images[:STATIC_CHECKS])
            print(
                f"static and Loop form: {forms.identical_captions} of {forms.images} captions identical, "
                f"log probabilities within {forms.largest_log_probability_difference:.1e}"
            )
            if forms.identical_captions < AGREEMENT[arguments.precision] * forms.images:
                raise ExportError("the static form does not say what the Loop form says; no bundle was written")

    bundle = write_bundle(
        arguments.bundle, graphs, trained.vocabulary, facts, check=says_what_torch_says, replace=arguments.replace
    )
    size = sum(file["bytes"] for file in bundle.manifest["files"].values())
    print(f"{bundle.path}: {size / 1e6:.1f} MB")


def vision_of(trained: TrainedCaptioner, lender: Bundle | None, detects: bool) -> onnx.ModelProto:
    """The graph of the captioner's own backbone, or that of the bundle which made its tokens, as it is."""
    if lender is not None:
        return onnx.load(str(lender.path / VISION_GRAPH))
    assert trained.backbone is not None
    return export_vision(trained.backbone, detects=detects)


def longest_caption(trained: TrainedCaptioner, wanted: int | None) -> int:
    """``--max-words``, or what the model was trained with.

    Raises:
        ExportError: the model has no positions for captions that long.
    """
    longest = trained.captioner.max_words or 1 << 30
    max_words = int(wanted or trained.record["experiment"]["data"]["max_words"])
    if not 2 <= max_words <= longest:
        raise ExportError(f"--max-words must lie between 2 and {longest}, the longest that this model can say")
    return max_words


def dev_split(trained: TrainedCaptioner, vision: onnx.ModelProto) -> DevSplit:
    """What int8 layers are chosen on.

    Raises:
        ExportError: Flickr8k is not there.
    """
    try:
        return DevSplit.load(trained.vocabulary, vision)
    except DataError as error:
        raise ExportError(f"int8 layers are chosen on Flickr8k's dev split: {error}") from None


def choose_layers(pieces: TracedCaptioner, dev: DevSplit, max_words: int, weights: str) -> Choice:
    """The layers that bear 8 bits, by what they do to captions of the dev split.

    Raises:
        ExportError: no layer does.
    """
    choice = choose(
        pieces, weights,
        lambda candidate: dev.captions(loop_form(candidate, max_words)),
        lambda candidate: dev.captions(loop_form(candidate, max_words), LAYER_CHECKS),
        dev.cider_d,
    )  # fmt: skip
    if not choice.chosen.layers:
        raise ExportError(f"no layer of this model can be put in 8 bits with {IDENTICAL:.0%} of its captions the same")
    return choice


def check_images(count: int) -> tuple[np.ndarray, str]:
    """Frames to compare on, (count, 224, 224, 3) uint8, and what they are."""
    try:
        dataset = Flickr8k(data_folder() / "flickr8k")
        return dataset.read_images(dataset.split("dev")[:count]), "dev photographs"
    except DataError:
        return synthetic_images(count, IMAGE_SIZE), "synthetic images"


def describe(
    trained: TrainedCaptioner, name: str, beam_size: int, max_words: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    """The manifest's facts (docs/bundles.md)."""
    experiment = trained.record["experiment"]
    scored = "averaged" if "averaged" in trained.record else "dev"
    return {
        "name": name,
        "created": time.strftime("%Y-%m-%d"),
        "exported_by": {
            "package": __version__, "commit": exporting_commit(), "onnx": onnx.__version__,
        },
        "architecture": {"family": trained.family, **asdict(trained.captioner.config)},
        "training": {"experiment": experiment, scored: trained.record.get(scored, {})},
        "decoding": {"beam_size": beam_size, "max_words": max_words},
        "precision": {
            "stored": "float16" if arguments.precision == "float16" else arguments.storage,
            "computed": arguments.precision,
        },
        "scores": {},
    }  # fmt: skip


def describe_vision(
    trained: TrainedCaptioner, lender: Bundle | None, vision: onnx.ModelProto, architecture: dict[str, Any]
) -> dict[str, Any]:
    """The manifest's facts of what makes the tokens, from the lender's manifest where there is one."""
    parameters = sum(p.numel() for p in trained.captioner.parameters())
    data = trained.caption_provenance
    if lender is not None:
        theirs = lender.manifest
        weights = (w for w in vision.graph.initializer if w.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16))
        parameters += sum(math.prod(weight.dims) for weight in weights)
        return {
            "architecture": {
                **architecture, "backbone": theirs["architecture"].get("backbone", "unknown"),
                "parameters": parameters,
            },
            "trained_on": [*data, *(entry for entry in theirs["trained_on"] if entry not in data)],
            "preprocessing": theirs["preprocessing"],
            "tokens": theirs["tokens"],
        }  # fmt: skip
    assert trained.backbone is not None
    parameters += sum(p.numel() for p in trained.backbone.parameters())
    rows, columns = GRID
    return {
        "architecture": {**architecture, "backbone": trained.backbone.description, "parameters": parameters},
        "trained_on": [*data, *(entry for entry in trained.record["backbone_trained_on"] if entry not in data)],
        "preprocessing": {
            "width": IMAGE_SIZE, "height": IMAGE_SIZE, "channels": "bgr", "dtype": "uint8", "resize": "squash",
            "interpolation": "area where the frame shrinks, linear where it grows",
        },
        "tokens": {"rows": rows, "columns": columns, "width": trained.backbone.token_width},
    }  # fmt: skip


def describe_detector(trained: TrainedCaptioner, lender: Bundle | None, minimum_score: float | None) -> dict[str, Any]:
    """The manifest's facts of what finds objects in the vision graph, the format's version among them.

    Args:
        minimum_score: None where the captioner's own backbone finds none.
    """
    facts: dict[str, Any] = {"class_names": []}
    if trained.backbone is not None and minimum_score is not None:
        facts["class_names"] = list(trained.backbone.class_names)
        facts["detector"] = {"layout": VISION_LAYOUT, "minimum_score": minimum_score}
        if teachers := trained.record["detector"].get("boxes_by"):
            facts["detector"]["boxes_by"] = [TEACHERS.get(name, {"name": name}) for name in teachers]
    elif lender is not None and lender.detector is not None and lender.detector.layout == VISION_LAYOUT:
        facts = {key: lender.manifest[key] for key in ("class_names", "detector")}
    return {"format_version": FORMATS["detector" in facts], **facts}


if __name__ == "__main__":
    sys.exit(main())
