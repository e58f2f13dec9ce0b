"""What benchmarks share: the environment of a measurement, the option ``--size``, and the report of the result."""

import json
import platform
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer

from smart_caption_ros.files import write_text_atomically
from smart_caption_ros.measuring.benchmark import hardware

PACKAGES = ("smart_caption_ros", "numpy", "onnxruntime", "opencv-python-headless", "torch")


def describe_environment(seed: int) -> dict[str, object]:
    """Collect date, hardware, versions and seed for the JSON of a benchmark."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "seed": seed,
        "hardware": hardware(),
        "python": platform.python_version(),
        "versions": versions_of(PACKAGES),
    }


def versions_of(packages: Iterable[str], missing: str = "not installed") -> dict[str, str]:
    """Return the versions of packages of PyPI; ``missing`` for those that are not."""
    versions = dict.fromkeys(packages, missing)
    for package in versions:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def parsed_size(size: str) -> tuple[int, int]:
    """Parse width and height of the option ``--size``, such as ``1920x1080``.

    Raises:
        typer.BadParameter: it is something else.
    """
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", size)
    if match is None:
        raise typer.BadParameter(f"--size is {size!r}, and has to be WIDTHxHEIGHT in pixels, such as 1920x1080")
    return int(match[1]), int(match[2])


def report(result: Mapping[str, object], path: Path | None) -> None:
    """Print a result as JSON and, with a ``path``, write it there atomically."""
    text = json.dumps(result, indent=2)
    print(text)
    if path is not None:
        write_text_atomically(path, f"{text}\n")
