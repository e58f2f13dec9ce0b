"""`smart-caption bundle build`, with and without (a stand-in for) TensorRT."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from smart_caption_ros.captioning import Captioner
from tests.detection.tiny_detectors import write_yolox
from tests.engines.fake_tensorrt import install, interrupt_at_first_step
from tests.engines.small_graphs import add_static_captioner

Run = Callable[..., Result]


def test_without_tensorrt_one_sentence_says_where_it_comes_from(
    run: Run, tiny_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorrt", None)
    result = run("bundle", "build", tiny_bundle)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("smart-caption: tensorrt cannot be imported")
    assert "pip install 'smart_caption_ros[tensorrt]'" in result.stderr
    assert result.stderr.count("\n") == 1


def test_engines_are_built_once_and_auto_takes_them_afterwards(
    run: Run, tiny_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = Path(shutil.copytree(tiny_bundle, tmp_path / "bundle"))
    add_static_captioner(bundle)
    tensorrt = install(monkeypatch, tmp_path / "cache")
    for _ in range(2):
        result = run("bundle", "build", bundle)
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines()[-1] == "tiny is ready for tensorrt 10.3.0 (Fake GPU)"
    assert tensorrt.builds == 2  # one a graph, and none the second time
    assert Captioner.from_bundle(bundle).engine == "tensorrt 10.3.0 (Fake GPU)"


def test_the_engine_of_the_bundles_detector_is_built_as_well_so_that_auto_takes_tensorrt(
    run: Run, bundle_with_detector: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_static_captioner(bundle_with_detector)
    tensorrt = install(monkeypatch, tmp_path / "cache")
    result = run("bundle", "build", bundle_with_detector)
    assert result.exit_code == 0, result.output
    assert "detector.onnx: " in result.stdout
    assert tensorrt.builds == 3
    assert Captioner.from_bundle(bundle_with_detector).engine == "tensorrt 10.3.0 (Fake GPU)"


def test_the_engine_of_another_detector_is_built_when_it_is_named(
    run: Run, tiny_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = Path(shutil.copytree(tiny_bundle, tmp_path / "bundle"))
    add_static_captioner(bundle)
    tensorrt = install(monkeypatch, tmp_path / "cache")
    detector = write_yolox(tmp_path / "other.onnx")
    assert run("bundle", "build", bundle, "--detector", detector).exit_code == 0
    assert tensorrt.builds == 3
    assert Captioner.from_bundle(bundle, detector=detector).engine == "tensorrt 10.3.0 (Fake GPU)"
    missing = run("bundle", "build", bundle, "--detector", tmp_path / "nowhere.onnx")
    assert (missing.exit_code, tensorrt.builds) == (1, 3)
    assert "nowhere.onnx: there is no such detector" in missing.stderr


def test_a_bundle_without_the_static_form_is_refused_before_anything_is_built(
    run: Run, tiny_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smart_caption_ros.captioning.Bundle.static_graph", None)
    tensorrt = install(monkeypatch, tmp_path / "cache")
    result = run("bundle", "build", tiny_bundle)
    assert result.exit_code == 1
    assert "has no captioner_static.onnx, the form that TensorRT runs; export it again" in result.stderr
    assert tensorrt.builds == 0


def test_ctrl_c_cancels_the_build_with_one_sentence_and_leaves_no_file_of_it(
    run: Run, bundle_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensorrt = install(monkeypatch, tmp_path / "cache")
    interrupt_at_first_step(tensorrt)
    result = run("bundle", "build", bundle_copy)
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == (
        "smart-caption: cancelled the build of the engine of vision.onnx; engines that were complete are kept\n"
    )
    assert (tensorrt.builds, tensorrt.cancelled_builds) == (0, 1)
    assert not (tmp_path / "cache").exists()
    assert run("bundle", "build", bundle_copy).exit_code == 0
