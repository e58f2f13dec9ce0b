"""Copies of the tiny bundle to spoil."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def bundle_copy(tiny_bundle: Path, tmp_path: Path) -> Path:
    """A bundle that the test may damage."""
    return Path(shutil.copytree(tiny_bundle, tmp_path / "bundle"))
