"""Write a bundle folder, whole or not at all."""

import dataclasses
import json
import math
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import onnx
from onnx import helper, numpy_helper

from export.storage import share_weights
from export.weights import values_of
from smart_caption_ros.captioning.bundle import (
    CAPTIONER_GRAPH,
    FORMAT_VERSION,
    MANIFEST,
    STATIC_GRAPH,
    VOCABULARY,
    WEIGHTS,
    Bundle,
    write_manifest,
)
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.files import folder_replaced_atomically, sha256_of
from training.engine.bundle_captioner import PARAMETERS, Place
from training.vision.weight_files import with_bodies

MOST_STORED = 2**31 - 2**24
"""Most bytes of weights in a file: protobuf limits a message to 2 GiB, and the nodes need room."""


class ExportError(Exception):
    """A bundle cannot be written; the message says why and what to do."""


def check_destination(folder: Path, *, replace: bool) -> None:
    """Check that a bundle may be written to ``folder``.

    Raises:
        ExportError: ``folder`` exists and ``replace`` is False, or it is not a bundle.
    """
    if not folder.exists():
        return
    if not replace:
        raise ExportError(f"{folder} exists; give --replace to write over it")
    if not (folder / MANIFEST).is_file():
        raise ExportError(f"{folder} exists and is not a bundle; it is left alone")


def write_bundle(
    folder: Path,
    graphs: dict[str, onnx.ModelProto],
    vocabulary: Vocabulary,
    facts: dict[str, Any],
    *,
    check: Callable[[Bundle], None],
    parameters: Mapping[str, Place] = MappingProxyType({}),
    replace: bool = False,
) -> Bundle:
    """Write a bundle under a temporary name, check it, rename it.

    Args:
        graphs: the graphs by file name; emptied, so that the check has their memory. The weights of the captioner's
            graphs are moved to one shared file.
        facts: the manifest without ``format_version``, ``vocabulary`` and ``files``; with ``detector`` and
            ``class_names`` if there is a detector's graph.
        check: called with the bundle under its temporary name; if it raises, ``folder`` stays as it was.
        parameters: where the captioner's graph holds each parameter (:func:`export.parameter_table.parameter_table`).
        replace: an existing bundle at ``folder`` is replaced once the new one has passed.

    Raises:
        ExportError: ``folder`` exists and ``replace`` is False, or it is not a bundle; or the weights are too large.
        BundleError: ``facts`` lack something that a bundle needs.
    """
    check_destination(folder, replace=replace)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder_replaced_atomically(folder) as unfinished:
        names = [*graphs, WEIGHTS, VOCABULARY]
        captioners = [graph for name, graph in graphs.items() if name in (CAPTIONER_GRAPH, STATIC_GRAPH)]
        graphs[WEIGHTS] = share_weights(captioners)
        del captioners
        for name in list(graphs):
            write_graph(unfinished / name, graphs.pop(name))
        vocabulary.save(unfinished / VOCABULARY)
        if parameters:
            places = {name: dataclasses.asdict(place) for name, place in parameters.items()}
            (unfinished / PARAMETERS).write_text(json.dumps(places, indent=1) + "\n", encoding="utf-8")
            names.append(PARAMETERS)
        manifest = {"format_version": FORMAT_VERSION, **facts, "vocabulary": vocabulary.joining}
        write_manifest(unfinished, {**manifest, "files": described_files(unfinished, names)})
        bundle = Bundle.load(unfinished)
        check(bundle)
    return dataclasses.replace(bundle, path=folder)


def write_graph(path: Path, model: onnx.ModelProto) -> None:
    """Write a graph with its weights inside; weights in files are moved into ``model``.

    Raises:
        ExportError: the weights take more memory than a file of ONNX can hold.
    """
    tensors = [tensor for graph in with_bodies(model.graph) for tensor in graph.initializer]
    sizes = (math.prod(tensor.dims) * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize for tensor in tensors)
    if (size := sum(sizes)) > MOST_STORED:
        raise ExportError(
            f"the weights of {path.name} take {size / 1e9:.1f} GB as they are stored, but a file of ONNX can hold "
            f"{MOST_STORED / 1e9:.1f} GB; choose --storage float16, --precision int8 or a smaller network"
        )
    for tensor in tensors:
        if tensor.external_data:
            tensor.CopyFrom(numpy_helper.from_array(values_of(tensor), tensor.name))
    path.write_bytes(model.SerializeToString())


def described_files(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the size and the sha256 of the named files, for a manifest."""
    return {name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)} for name in names}


def exporting_commit() -> str:
    """Return the checkout's commit, with ``+`` if it has uncommitted changes; empty outside a checkout."""
    here = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""
