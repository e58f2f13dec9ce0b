"""Where engines keep what they built: one file a fingerprint, written whole or not at all."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from smart_caption_ros import __version__
from smart_caption_ros.captioning.bundle import sha256_of
from smart_caption_ros.captioning.external_data import external_locations


def fingerprint(graph: Path, facts: Mapping[str, object]) -> str:
    """What a built engine is valid for, as 64 hexadecimal digits.

    Args:
        graph: the ONNX file; weights that it keeps in other files count too.
        facts: versions, device and options that went into building.
    """
    weights = sorted(external_locations(graph))
    everything = {
        "package": __version__,
        "graph": sha256_of(graph),
        "weights": {name: sha256_of(graph.parent / name) for name in weights},
        **facts,
    }
    return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Write under a temporary name and rename; makes the folder.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
