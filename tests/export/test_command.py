"""``python -m export`` as a user runs it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from smart_caption_ros.captioning import Bundle


def export(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "export", *map(str, arguments)]
    environment = {**os.environ, "SMART_CAPTION_DATA": "/nowhere"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_a_bundle_is_written_and_checked_against_torch(exported_bundle: Path) -> None:
    bundle = Bundle.load(exported_bundle)
    assert bundle.manifest["precision"] == {"stored": "float16", "computed": "float32"}
    assert bundle.manifest["architecture"]["memory_slots"] == 5
    assert bundle.static_graph is not None
    assert not list(exported_bundle.parent.glob("*.unfinished"))


def test_float32_weights_give_a_larger_bundle_that_agrees_with_torch(
    tiny_checkpoint: Path, exported_bundle: Path, tmp_path: Path
) -> None:
    done = export(tiny_checkpoint, tmp_path / "bundle", "--storage", "float32", "--beam-size", 2, "--check-images", 4)
    assert done.returncode == 0, done.stderr
    assert "4 of 4 captions" in done.stdout
    assert "static and Loop form: 4 of 4 captions" in done.stdout
    assert Bundle.load(tmp_path / "bundle").beam_size == 2
    smaller, larger = exported_bundle / "vision.onnx", tmp_path / "bundle" / "vision.onnx"
    assert larger.stat().st_size > 1.8 * smaller.stat().st_size


def test_a_float16_bundle_says_so_and_may_do_without_the_static_form(tiny_checkpoint: Path, tmp_path: Path) -> None:
    done = export(
        tiny_checkpoint, tmp_path / "bundle", "--precision", "float16", "--no-static", "--max-words", 4,
        "--beam-size", 1, "--check-images", 2,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    bundle = Bundle.load(tmp_path / "bundle")
    assert bundle.manifest["precision"] == {"stored": "float16", "computed": "float16"}
    assert bundle.static_graph is None
    assert bundle.max_words == 4


@pytest.mark.parametrize(
    ("options", "reason"),
    [(("--precision", "int8"), "Flickr8k's dev split"), (("--max-words", 99), "--max-words must lie between 2 and 54")],
)
def test_what_cannot_be_exported_is_refused_in_one_sentence(
    tiny_checkpoint: Path, tmp_path: Path, options: tuple[object, ...], reason: str
) -> None:
    done = export(tiny_checkpoint, tmp_path / "bundle", *options)
    assert done.returncode == 1
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_is_not_written_over_unasked(
    tiny_checkpoint: Path, exported_bundle: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(exported_bundle, tmp_path / "bundle")
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
