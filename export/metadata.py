"""Remove metadata and doc strings from graphs: PyTorch's exporter writes stack traces with paths of the machine.

    python -m export.metadata BUNDLE

does so with the graphs of an existing bundle and brings its manifest up to date. Weights, values and their names stay
as they are.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import onnx
import typer

from smart_caption_ros.captioning import Bundle, BundleError
from smart_caption_ros.captioning.bundle import write_manifest
from smart_caption_ros.files import sha256_of, write_bytes_atomically
from training.command_line import run_command

EARLIER_SHA256 = "earlier_sha256"
"""Key of a file in the manifest: digests of the same graph with metadata. Features that such a graph computed remain
valid."""


def clear_metadata(model: onnx.ModelProto) -> bool:
    """Clear doc strings and metadata, in place, in the model and all that is in it; return whether there were any."""
    found = False
    for message in (model, *model.functions, *_messages(model.graph)):
        for field in ("doc_string", "metadata_props"):
            if field in message.DESCRIPTOR.fields_by_name:
                found |= bool(getattr(message, field))
                message.ClearField(field)
    return found


def _messages(graph: onnx.GraphProto) -> Iterator[Any]:
    """The graph, its values, tensors, nodes and attributes, and those of the graphs in its nodes."""
    yield from (graph, *graph.input, *graph.output, *graph.value_info, *graph.initializer, *graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _messages(attribute.g)


def clear_bundle(folder: Path) -> dict[str, int]:
    """Clear the metadata of a bundle's graphs, in place.

    Returns:
        By how many bytes each graph became smaller; graphs without metadata are left as they are.

    Raises:
        BundleError: the bundle is missing or wrong.
    """
    manifest = dict(Bundle.load(folder).manifest)
    smaller = {}
    for name, facts in manifest["files"].items():
        path = folder / name
        if path.suffix != ".onnx":
            continue
        model = onnx.load(str(path), load_external_data=False)
        if not clear_metadata(model):
            continue
        content = model.SerializeToString()
        write_bytes_atomically(path, content)
        smaller[name] = facts["bytes"] - len(content)
        facts[EARLIER_SHA256] = [*facts.get(EARLIER_SHA256, []), facts["sha256"]]
        facts |= {"bytes": len(content), "sha256": sha256_of(path)}
    write_manifest(folder, manifest)
    Bundle.load(folder)
    return smaller


def clear(bundle: Annotated[Path, typer.Argument(help="Folder of the bundle.")]) -> None:
    """Remove metadata and doc strings from the graphs of a bundle."""
    smaller = clear_bundle(bundle)
    for name, count in smaller.items():
        print(f"{name}: {count} bytes smaller")
    if not smaller:
        print("no graph has metadata")


def main() -> int:
    return run_command(clear, "python -m export.metadata", errors=(BundleError,))


if __name__ == "__main__":
    sys.exit(main())
