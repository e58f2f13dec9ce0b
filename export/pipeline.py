"""From a checkpoint to a bundle: read, trace, optimise, describe, write, check; and a backbone alone as a bundle."""

from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from export.bundle import (
    ExportError,
    check_destination,
    described_files,
    exporting_commit,
    write_bundle,
    write_graph,
)
from export.graphs import make_graphs
from export.manifest import describe, describe_vision
from export.options import ExportOptions
from export.passes.float16 import write_float16
from export.passes.int8 import quantise_products
from export.source import CheckImages, load_source
from export.storage import round_to_float16, store_as_float16
from export.tensorrt import unsupported_by_tensorrt
from export.verify import LARGEST_ERROR, check_of, compare_tokens
from export.vision import export_vision
from smart_caption_ros.captioning import Bundle
from smart_caption_ros.captioning.bundle import (
    FORMAT_VERSION,
    VISION_GRAPH,
    VISION_LAYOUT,
    VisionBundle,
    write_manifest,
)
from smart_caption_ros.files import folder_replaced_atomically
from training.data.visual_inputs import backbone_provenance
from training.engine.trained_captioner import TrainedCaptioner
from training.paths import data_folder
from training.vision.backbone import Backbone
from training.vision.released_weights import CHECKPOINT_SUFFIX, open_backbone


def export_bundle(options: ExportOptions, trained: TrainedCaptioner | None = None) -> Bundle:
    """Export a trained captioner as a bundle.
    ``trained``: the captioner; None: that of the options' checkpoint.

    Raises:
        ExportError: an option does not fit, the bundle cannot be written, or it disagrees with torch.
        CheckpointError: the checkpoint is missing or malformed.
        BundleError: the bundle with the vision graph is missing or wrong.
        EngineError: ONNX Runtime cannot load a graph.
        ValueError: the captioner breaks its contract.
    """
    source = load_source(options, trained)
    made = make_graphs(source, options)
    return write_bundle(
        options.bundle,
        made.graphs,
        source.trained.vocabulary,
        describe(source, options, made),
        check=check_of(source, options),
        parameters=made.parameters,
        replace=options.replace,
    )


@dataclass(frozen=True)
class VisionExport:
    """A bundle without a captioner, and what its precision costs."""

    bundle: VisionBundle
    error: float
    """Root mean square of the difference between the tokens and torch's, a share of the latter's."""
    similarity: float
    """Lowest mean over a photograph of the cosine between its tokens and torch's."""
    photographs: str
    """Number and origin of the photographs on which both were measured."""


def export_vision_bundle(options: ExportOptions, name: str) -> VisionExport:
    """Write a bundle that holds a vision graph alone.
    ``name``: name of a backbone as in an experiment file, or best.safetensors of a run with a backbone.

    Raises:
        BackboneError: the backbone is missing or malformed.
        CheckpointError: the checkpoint is missing or malformed.
        ExportError: the captioner has no backbone, TensorRT refuses an operator, the weights are too large, or the
            tokens are not torch's.
    """
    check_destination(options.bundle, replace=options.replace)
    backbone, trained_on = _backbone(name)
    size = options.image_size
    if size:
        backbone.set_image_size(size, size)
    unrounded = [tensor.clone() for tensor in backbone.state_dict().values()] if options.rounded else []
    if options.rounded:
        round_to_float16(backbone)
    graph = export_vision(backbone, detects=options.detector, fused_attention=options.precision == "int8")
    if options.precision == "float16":
        graph, _ = write_float16(graph)
    elif options.precision == "int8":
        graph = quantise_products(graph)
    if reasons := unsupported_by_tensorrt(graph, static=False) if options.precision != "int8" else []:
        raise ExportError(f"TensorRT cannot run the graph: {reasons[0]} ({len(reasons)} reasons in all)")
    if options.rounded:
        store_as_float16(graph)
        for tensor, value in zip(backbone.state_dict().values(), unrounded, strict=True):
            tensor.copy_(value)
    detects = options.detector and bool(backbone.class_names)
    facts = {
        "format_version": FORMAT_VERSION,
        "name": options.name or name.rstrip("/").rpartition("/")[2],
        "exported_by": {"commit": exporting_commit(), "onnx": onnx.__version__},
        "architecture": {"backbone": backbone.description},
        "trained_on": trained_on,
        "precision": {"stored": "float16" if options.rounded else "float32", "computed": options.precision},
        **describe_vision(backbone.spec),
        "class_names": list(backbone.class_names) if detects else [],
        **({"detector": {"layout": VISION_LAYOUT, "minimum_score": options.detector_score}} if detects else {}),
    }
    options.bundle.parent.mkdir(parents=True, exist_ok=True)
    with folder_replaced_atomically(options.bundle) as unfinished:
        write_graph(unfinished / VISION_GRAPH, graph)
        write_manifest(unfinished, {**facts, "files": described_files(unfinished, [VISION_GRAPH])})
        photographs = CheckImages.find(options.calibration, {})
        frames = photographs.read(options.check_images)
        bundle = VisionBundle.load(unfinished)
        error, similarity = compare_tokens(bundle, backbone, frames)
        if not error <= LARGEST_ERROR[options.precision]:
            raise ExportError(
                f"the tokens of {photographs.description} differ from torch's by {error:.1%} of their size, more than "
                f"{LARGEST_ERROR[options.precision]:.0%}; no bundle was written"
            )
    return VisionExport(
        replace(bundle, path=options.bundle), error, similarity, f"{len(frames)} {photographs.description}"
    )


def _backbone(name: str) -> tuple[Backbone, list[dict[str, str]]]:
    """Read a backbone; return it with the data that it was trained on.

    Raises:
        ExportError: the captioner has none.
    """
    if not name.endswith(CHECKPOINT_SUFFIX) or name.startswith("timm/"):
        folder = data_folder() / "backbones"
        return open_backbone(name, folder), backbone_provenance(name, folder)
    trained = TrainedCaptioner.load(Path(name))
    if trained.backbone is None:
        raise ExportError(
            f"{name}: this captioner was trained on stored features and has no backbone; name the backbone"
        )
    return trained.backbone, [*trained.caption_provenance, *trained.record["backbone_trained_on"]]
