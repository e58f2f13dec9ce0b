"""Bundles of captioners of stored region features: without a vision graph, or with that of another bundle."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx

from export.bundle import check_destination, described_files, exporting_commit, write_graph
from export.captioner_graph import loop_form
from export.import_checkpoint.published import ImportCheckpointError, PublishedModel, experiment_of
from export.trace import trace_captioner
from smart_caption_ros import __version__
from smart_caption_ros.captioning.bundle import (
    CAPTIONER_GRAPH,
    FORMAT_VERSION,
    VISION_GRAPH,
    VOCABULARY,
    Bundle,
    write_manifest,
)
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.files import folder_replaced_atomically
from training.data.feature_extraction import VISION_GRAPH_TOKENS
from training.engine.trained_captioner import TrainedCaptioner
from training.models.captioner import Captioner

CHECKPOINT = "captioner.safetensors"


def write_region_bundle(
    folder: Path,
    model: PublishedModel,
    captioner: Captioner,
    *,
    name: str,
    origin: str,
    features: str,
    beam_size: int,
    max_words: int,
    replace: bool,
) -> int:
    """Write the captioner's graph, checkpoint and vocabulary to a folder, whole or not at all.

    The search of the graph is the published one: it may choose every word that ``model`` does not forbid, and ends
    after ``max_words``, so that all beams are finished.

    Args:
        origin: what the weights came from, for the manifest.
        features: path of the region features, for the checkpoint.

    Returns:
        Size of the bundle, bytes.

    Raises:
        ExportError: ``folder`` exists and ``replace`` is False, or it is not a bundle; or the weights are too large.
        ValueError: the captioner cannot decode ``max_words`` words.
    """
    check_destination(folder, replace=replace)
    if captioner.max_words is not None and max_words > captioner.max_words:
        raise ValueError(f"--max-words must be at most {captioner.max_words}, the longest that this model can say")
    search = Search(beam_size, max_words, model.forbidden)
    traced = trace_captioner(captioner, search)
    graph = loop_form(traced, max_words, early_exit=False)
    trained = TrainedCaptioner(
        model.family, captioner, None, model.vocabulary, _record(model, name, features, beam_size, max_words), search
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder_replaced_atomically(folder) as unfinished:
        write_graph(unfinished / CAPTIONER_GRAPH, graph)
        model.vocabulary.save(unfinished / VOCABULARY)
        trained.save(unfinished / CHECKPOINT)
        files = described_files(unfinished, (CAPTIONER_GRAPH, VOCABULARY, CHECKPOINT))
        facts: dict[str, Any] = {
            "format_version": FORMAT_VERSION,
            "name": name,
            "created": time.strftime("%Y-%m-%d"),
            "exported_by": {"package": __version__, "commit": exporting_commit(), "onnx": onnx.__version__},
            "architecture": {
                "family": model.family,
                **asdict(captioner.config),
                "parameters": sum(parameter.numel() for parameter in captioner.parameters()),
            },
            "imported_from": origin,
            "decoding": search.as_json(),
            "precision": {"stored": "float32", "computed": "float32"},
            "captioner_inputs": list(traced.inputs),
            "tokens": {"regions": "stored", "width": captioner.config.token_width},
            "files": files,
        }
        write_manifest(unfinished, facts)
    return sum(file["bytes"] for file in files.values())


def _record(model: PublishedModel, name: str, features: str, beam_size: int, max_words: int) -> dict[str, Any]:
    """Describe the checkpoint as the result of an experiment, which `training.evaluate` reads."""
    return {
        "name": name,
        "features": {"kind": "hdf5"},
        "experiment": {
            "name": name,
            "features": {"hdf5": features, "width": model.config.token_width},
            **experiment_of(name, model.family, model.config, {**model.data, "max_words": max_words}),
            "evaluation": {"beam_size": beam_size},
        },
    }


def trained_on_tokens_of(
    bundle: Bundle, model: PublishedModel, captioner: Captioner, *, name: str, beam_size: int, max_words: int
) -> TrainedCaptioner:
    """Make a captioner that exports with the vision graph of a bundle.

    Raises:
        ImportCheckpointError: the graph makes tokens of another width than the captioner takes.
    """
    width = captioner.config.token_width
    if bundle.token_width != width:
        raise ImportCheckpointError(
            f"--vision: {bundle.path} makes tokens {bundle.token_width} wide, but the checkpoint takes features "
            f"{width} wide; give the bundle of the backbone that it was trained on"
        )
    record = _record(model, name, "", beam_size, max_words)
    record["experiment"]["features"] = {}
    record["experiment"]["data"].setdefault("options", {"karpathy": "dataset_coco.json"})
    sha256 = bundle.manifest["files"][VISION_GRAPH]["sha256"]
    source = {"made_by": VISION_GRAPH_TOKENS, "bundle": bundle.name, "vision_sha256": sha256}
    record["features"] = {"kind": "store", "source": source}
    return TrainedCaptioner(
        model.family, captioner, None, model.vocabulary, record, Search(beam_size, max_words, model.forbidden)
    )
