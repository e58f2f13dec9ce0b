"""What a figure was measured on."""

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

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
        "hardware": {"processor": processor(), "machine": platform.machine(), "cores": os.cpu_count()},
        "python": platform.python_version(),
        "versions": versions,
    }


def processor() -> str:
    """The processor's own name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
