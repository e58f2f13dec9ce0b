"""``python -m simulation.household``: refusals, and a rendered frame."""

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from simulation.household.__main__ import main


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["household", *arguments])
    return main()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--frames", "0"], "frames must be at least 1"),
        (["--sequences", "0"], "--sequences and --processes"),
        (["--step", "0"], "step must be more than 0"),
        (["--size", "8", "240"], "width must be at least 32"),
        (["--seed", "-1"], "seed must"),
    ],
)
def test_values_out_of_range_are_refused_in_a_sentence(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, "-o", str(tmp_path / "root"), *arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert not (tmp_path / "root").exists()


def test_without_blender_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("simulation.household.blender.renderer.find_spec", lambda name: None)
    assert run(monkeypatch, "-o", str(tmp_path / "root"), "--sequences", "1", "--frames", "1") == 1
    assert "pip install '.[household]'" in capsys.readouterr().err


@pytest.mark.needs_bpy
def test_a_rendered_frame_has_an_image_and_a_mask_that_agrees_with_its_labels(tmp_path: Path) -> None:
    options = "--sequences 1 --frames 1 --size 96 72 --samples 2 --processes 1"
    command = [sys.executable, "-m", "simulation.household", "-o", str(tmp_path), *options.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 frames rendered, 0 were there" in done.stdout
    image = cv2.imread(str(tmp_path / "000000" / "000000.jpg"))
    assert image.shape == (72, 96, 3)
    assert 20 < image.mean() < 235
    assert image.std() > 5
    record = json.loads((tmp_path / "000000" / "labels.json").read_text())["000000"]
    mask = cv2.imread(str(tmp_path / "000000" / "000000_mask.png"), cv2.IMREAD_UNCHANGED)
    for entry in (value for key, value in record.items() if not key.startswith("_")):
        assert int(np.sum(mask == entry["mask_id"])) == entry["num_pixels"]
