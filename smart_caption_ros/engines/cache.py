"""What an engine that was built once is kept under: a fingerprint of all that it depends on."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from smart_caption_ros import __version__
from smart_caption_ros.engines.external_data import external_locations
from smart_caption_ros.files import sha256_of


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
