"""The manifest of a bundle (docs/bundles.md), without its files."""

import math
import time
from dataclasses import asdict
from typing import Any

import onnx
from onnx import TensorProto

from export.bundle import exporting_commit
from export.graphs import BundleGraphs
from export.options import ExportOptions
from export.source import Source
from smart_caption_ros import __version__
from smart_caption_ros.captioning.bundle import VISION_GRAPH, VISION_LAYOUT
from smart_caption_ros.imaging.detail import MIN_DETAIL
from training.data.datasets import merge_provenance
from training.vision.backbone import BackboneSpec


def describe(source: Source, options: ExportOptions, made: BundleGraphs) -> dict[str, Any]:
    """Describe a bundle for its manifest."""
    trained = source.trained
    scores = "averaged" if "averaged" in trained.record else "dev"
    precision: dict[str, Any] = {
        "stored": "float16" if options.precision == "float16" else options.storage,
        "computed": options.precision,
    }
    if made.int8 is not None:
        precision["int8"] = made.int8.report()
    vision = made.graphs[VISION_GRAPH]
    return {
        "name": options.name or trained.record["name"],
        "created": time.strftime("%Y-%m-%d"),
        "exported_by": {"package": __version__, "commit": exporting_commit(), "onnx": onnx.__version__},
        "architecture": {
            "family": trained.family, **asdict(trained.captioner.config), "backbone": _backbone(source),
            "parameters": _parameters(source, vision),
        },
        "training": {"experiment": trained.record["experiment"], scores: trained.record.get(scores, {})},
        "decoding": trained.search.as_json(),
        "min_detail": MIN_DETAIL,
        "precision": precision,
        "scores": {},
        "captioner_inputs": list(made.captioner_inputs),
        **_vision_facts(source),
        **_detector_facts(source, options.detector_score),
    }  # fmt: skip


def _backbone(source: Source) -> str:
    if source.vision_bundle is not None:
        return str(source.vision_bundle.manifest["architecture"].get("backbone", "unknown"))
    assert source.trained.backbone is not None
    spec = source.trained.backbone.spec
    return f"{source.trained.backbone.description}, {spec.rows}x{spec.columns} grid"


def _parameters(source: Source, vision: onnx.ModelProto) -> int:
    """The number of parameters of the captioner and its backbone; of another bundle's only the graph is known."""
    captioner = sum(parameter.numel() for parameter in source.trained.captioner.parameters())
    if source.trained.backbone is not None:
        return captioner + sum(parameter.numel() for parameter in source.trained.backbone.parameters())
    floats = (TensorProto.FLOAT, TensorProto.FLOAT16)
    return captioner + sum(math.prod(w.dims) for w in vision.graph.initializer if w.data_type in floats)


def _vision_facts(source: Source) -> dict[str, Any]:
    """Data, preprocessing and tokens; those of another bundle are taken from its manifest."""
    data = source.trained.caption_provenance
    if source.vision_bundle is not None:
        theirs = source.vision_bundle.manifest
        return {
            "trained_on": merge_provenance(data, theirs["trained_on"]),
            "preprocessing": theirs["preprocessing"],
            "tokens": theirs["tokens"],
        }
    assert source.trained.backbone is not None
    return {
        "trained_on": merge_provenance(data, source.trained.record["backbone_trained_on"]),
        **describe_vision(source.trained.backbone.spec),
    }


def describe_vision(spec: BackboneSpec) -> dict[str, Any]:
    """Describe frames and visual tokens for a manifest."""
    frames = spec.preprocessing
    preprocessing: dict[str, Any] = {
        "width": frames.width, "height": frames.height, "channels": "bgr", "dtype": "uint8",
        "resize": "squash" if frames.shorter_side is None else "shorter side, then the centre",
        "interpolation": frames.interpolation,
        "mean_and_std": "in the graph",
    }  # fmt: skip
    sides = {key: getattr(frames, key) for key in ("shorter_side", "longer_side_first")}
    preprocessing |= {key: side for key, side in sides.items() if side is not None}
    tokens = {"rows": spec.rows, "columns": spec.columns, "before_grid": spec.before, "width": spec.token_width}
    return {"preprocessing": preprocessing, "tokens": tokens}


def _detector_facts(source: Source, minimum_score: float) -> dict[str, Any]:
    """The detector in the vision graph, and its classes."""
    facts: dict[str, Any] = {"class_names": []}
    vision_bundle = source.vision_bundle
    if source.detects:
        assert source.trained.backbone is not None
        facts["class_names"] = list(source.trained.backbone.class_names)
        facts["detector"] = {"layout": VISION_LAYOUT, "minimum_score": minimum_score}
        if origins := source.trained.record.get("detector", {}).get("boxes_by"):
            facts["detector"]["boxes_by"] = origins
    elif (
        vision_bundle is not None
        and vision_bundle.detector is not None
        and vision_bundle.detector.layout == VISION_LAYOUT
    ):
        facts = {key: vision_bundle.manifest[key] for key in ("class_names", "detector")}
    return facts
