"""Fingerprints under which built engines are cached."""

import json
from collections.abc import Mapping
from pathlib import Path

from smart_caption_ros import __version__
from smart_caption_ros.engines.external_data import external_locations
from smart_caption_ros.files import sha256_of, sha256_of_bytes


def fingerprint(graph: Path, facts: Mapping[str, object]) -> str:
    """Compute a fingerprint of everything that a built engine depends on, 64 hexadecimal digits.

    Args:
        graph: the ONNX file; its external weights are included.
        facts: versions, device and build options.
    """
    weights = sorted(external_locations(graph))
    everything = {
        "package": __version__,
        "graph": sha256_of(graph),
        "weights": {name: sha256_of(graph.parent / name) for name in weights},
        **facts,
    }
    return sha256_of_bytes(json.dumps(everything, sort_keys=True).encode())
