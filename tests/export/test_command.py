"""``python -m export`` as a user runs it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from smart_caption_ros.captioning import Bundle


def export(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "export", *map(str, arguments)]
    environment = {**os.environ, "SMART_CAPTION_DATA": "/nowhere"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_a_bundle_is_written_and_checked_against_torch(tiny_bundle: Path) -> None:
    bundle = Bundle.load(tiny_bundle)
    assert bundle.manifest["precision"] == {"stored": "float16", "computed": "float32"}
    assert bundle.manifest["architecture"]["memory_slots"] == 5
    assert not list(tiny_bundle.parent.glob("*.unfinished"))


def test_float32_weights_give_a_larger_bundle_that_agrees_with_torch(
    tiny_checkpoint: Path, tiny_bundle: Path, tmp_path: Path
) -> None:
    done = export(tiny_checkpoint, tmp_path / "bundle", "--precision", "float32", "--beam-size", 2, "--check-images", 4)
    assert done.returncode == 0, done.stderr
    assert "4 of 4 captions" in done.stdout
    assert Bundle.load(tmp_path / "bundle").beam_size == 2
    smaller, larger = tiny_bundle / "vision.onnx", tmp_path / "bundle" / "vision.onnx"
    assert larger.stat().st_size > 1.8 * smaller.stat().st_size


def test_an_existing_folder_is_not_written_over_unasked(
    tiny_checkpoint: Path, tiny_bundle: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(tiny_bundle, tmp_path / "bundle")
    before = (copy / "manifest.json").read_bytes()
    done = export(tiny_checkpoint, copy, "--check-images", 1)
    assert done.returncode == 1
    assert "--replace" in done.stderr
    assert "Traceback" not in done.stderr
    assert (copy / "manifest.json").read_bytes() == before


def test_a_folder_that_is_no_bundle_is_never_replaced(tiny_checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("thesis")
    done = export(tiny_checkpoint, tmp_path, "--replace", "--check-images", 1)
    assert done.returncode == 1
    assert "not a bundle" in done.stderr
    assert (tmp_path / "precious").read_text() == "thesis"


def test_a_file_that_is_no_checkpoint_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "best.safetensors").write_bytes(b"no tensors here")
    done = export(tmp_path / "best.safetensors", tmp_path / "bundle")
    assert done.returncode == 1
    assert "not a readable checkpoint" in done.stderr
    assert "Traceback" not in done.stderr
