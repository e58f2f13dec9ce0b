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
from export.captioner import export_captioner
from export.storage import round_to_float16, store_as_float16
from export.verify import compare, synthetic_images
from export.vision import GRID, IMAGE_SIZE, export_vision
from smart_caption_ros import __version__
from smart_caption_ros.captioning import Bundle, BundleError, Captioner, EngineError
from smart_caption_ros.captioning.bundle import FORMAT_VERSION, VISION_GRAPH
from smart_caption_ros.captioning.engines import create_engine
from training.backbones import PROVENANCE as BACKBONE_PROVENANCE
from training.captioning import TrainedCaptioner
from training.checkpoint import CheckpointError
from training.data.datasets import DATASETS
from training.data.flickr8k import DataError, Flickr8k
from training.data.folder import data_folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m export", description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="best.safetensors of a run")
    parser.add_argument("bundle", type=Path, help="folder to write")
    parser.add_argument("--name", help="name of the bundle (default: the experiment's)")
    parser.add_argument("--precision", choices=("float16", "float32"), default="float16", help="of stored weights")
    parser.add_argument("--beam-size", type=int, default=5, choices=range(1, 11), metavar="1..10")
    parser.add_argument(
        "--vision-from",
        type=Path,
        metavar="BUNDLE",
        help="of a captioner of stored features: the bundle that made them",
    )
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
    trained = TrainedCaptioner.load(arguments.checkpoint)
    lender = lender_of_vision(trained, arguments.vision_from)
    tokens = tokens_of(lender) if lender else None
    exact = copy.deepcopy(trained)
    if arguments.precision == "float16":
        # Rounded first, so that what is compared with torch, scored and shipped is one and the same model.
        round_to_float16(trained.captioner)
        if trained.backbone is not None:
            round_to_float16(trained.backbone)
    max_words = trained.record["experiment"]["data"]["max_words"]
    captioner = export_captioner(trained.captioner, arguments.beam_size, max_words)
    if arguments.precision == "float16":
        store_as_float16(captioner)
    if trained.backbone is not None:
        vision = export_vision(trained.backbone)
        if arguments.precision == "float16":
            store_as_float16(vision)
    else:
        assert lender is not None
        vision = onnx.load(str(lender.path / VISION_GRAPH))
    facts = describe(trained, arguments.name or trained.record["name"], arguments.beam_size, max_words, arguments)
    facts |= describe_vision(trained, lender, vision, facts["architecture"])
    images, what = check_images(arguments.check_images)

    def says_what_torch_says(bundle: Bundle) -> None:
        robot = Captioner(bundle, create_engine())
        captions = [robot.caption(image) for image in images]
        agreement = compare(trained, images, captions, bundle.beam_size, bundle.max_words, tokens)
        print(
            f"torch and {robot.engine}: {agreement.identical_captions} of {agreement.images} captions of {what} "
            f"identical, log probabilities within {agreement.largest_log_probability_difference:.1e}"
        )
        if arguments.precision == "float16":
            unrounded = compare(exact, images, captions, bundle.beam_size, bundle.max_words, tokens)
            print(f"unrounded weights give {unrounded.identical_captions} of {unrounded.images} of the same captions")
        # A tie between two beams may fall either way; more than that is an error of the export.
        if agreement.identical_captions < 0.99 * agreement.images:
            raise ExportError("the exported graphs do not say what torch says; no bundle was written")

    bundle = write_bundle(
        arguments.bundle, vision, captioner, trained.vocabulary, facts,
        check=says_what_torch_says, replace=arguments.replace,
    )  # fmt: skip
    size = sum(file["bytes"] for file in bundle.manifest["files"].values())
    print(f"{bundle.path}: {size / 1e6:.1f} MB")


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
    return {
        "format_version": FORMAT_VERSION,
        "name": name,
        "created": time.strftime("%Y-%m-%d"),
        "exported_by": {
            "package": __version__, "commit": exporting_commit(), "onnx": onnx.__version__,
        },
        "architecture": {"family": trained.family, **asdict(trained.captioner.config)},
        "training": {"experiment": experiment, "dev": trained.record.get("dev", {})},
        "decoding": {"beam_size": beam_size, "max_words": max_words},
        "precision": {"stored": arguments.precision, "computed": "float32"},
        "class_names": [],
        "scores": {},
    }  # fmt: skip


def describe_vision(
    trained: TrainedCaptioner, lender: Bundle | None, vision: onnx.ModelProto, architecture: dict[str, Any]
) -> dict[str, Any]:
    """The manifest's facts of what makes the tokens, from the lender's manifest where there is one."""
    experiment = trained.record["experiment"]
    parameters = sum(p.numel() for p in trained.captioner.parameters())
    data = DATASETS[experiment["data"].get("dataset", "flickr8k")].provenance
    if lender is not None:
        theirs = lender.manifest
        weights = (w for w in vision.graph.initializer if w.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16))
        parameters += sum(math.prod(weight.dims) for weight in weights)
        return {
            "architecture": {
                **architecture, "backbone": theirs["architecture"].get("backbone", "unknown"),
                "parameters": parameters,
            },
            "trained_on": [data, *(entry for entry in theirs["trained_on"] if entry != data)],
            "preprocessing": theirs["preprocessing"],
            "tokens": theirs["tokens"],
        }  # fmt: skip
    assert trained.backbone is not None
    parameters += sum(p.numel() for p in trained.backbone.parameters())
    rows, columns = GRID
    return {
        "architecture": {**architecture, "backbone": "MobileNetV2 1.0, 7x7 grid", "parameters": parameters},
        "trained_on": [data, BACKBONE_PROVENANCE[experiment["backbone"]]],
        "preprocessing": {
            "width": IMAGE_SIZE, "height": IMAGE_SIZE, "channels": "bgr", "dtype": "uint8", "resize": "squash",
            "interpolation": "area where the frame shrinks, linear where it grows",
        },
        "tokens": {"rows": rows, "columns": columns, "width": trained.backbone.token_width},
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
