"""What a figure was measured on, and how it is reported."""

import json
import platform
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from smart_caption_ros.files import write_text_atomically
from smart_caption_ros.measuring.benchmark import hardware

PACKAGES = ("smart_caption_ros", "numpy", "onnxruntime", "opencv-python-headless", "torch")


def describe_environment(seed: int) -> dict[str, object]:
    """Date, processor, cores, versions and seed, for the head of a benchmark's JSON."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "date": time.strftime("%Y-%m-%d"),
        "seed": seed,
        "hardware": hardware(),
        "python": platform.python_version(),
        "versions": versions,
    }


def report(result: Mapping[str, object], path: Path | None) -> None:
    """Print a result as JSON and, with a ``path``, write it there: whole, or not at all."""
    text = json.dumps(result, indent=2)
    print(text)
    if path is not None:
        write_text_atomically(path, f"{text}\n")
