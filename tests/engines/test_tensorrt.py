"""What stands around TensorRT: the cache of engines, cancelling, failures and the fallback of `auto`."""

import json
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest

from smart_caption_ros.captioning import Captioner, EngineError
from smart_caption_ros.engines import available_engines, create_engine
from smart_caption_ros.engines.errors import BuildCancelledError
from smart_caption_ros.engines.folding import with_float32_weights
from smart_caption_ros.engines.tensorrt import TensorRtEngine
from smart_caption_ros.files import cache_folder
from tests.engines.fake_tensorrt import install, interrupt_at_first_step
from tests.engines.small_graphs import FLOAT, UINT8, doubling, save

X = np.array([[1, 2, 3]], np.uint8)


def test_weights_in_8_bits_are_unpacked_to_what_they_stand_for(tmp_path: Path) -> None:
    nodes = [
        onnx.helper.make_node("Cast", ["x"], ["floats"], to=FLOAT),
        onnx.helper.make_node("DequantizeLinear", ["stored", "scale"], ["factors"], axis=0),
        onnx.helper.make_node("Mul", ["floats", "factors"], ["y"]),
    ]
    stored = {"stored": np.array([2, -4, 100], np.int8), "scale": np.array([1, 0.5, 0.25], np.float32)}
    shape = ["batch", 3]
    path = save(tmp_path / "g.onnx", nodes, [("x", UINT8, shape)], [("y", FLOAT, shape)], stored)
    before = path.read_bytes()
    unpacked = with_float32_weights(path)
    assert b"DequantizeLinear" not in unpacked
    assert path.read_bytes() == before
    path.write_bytes(unpacked)
    graph = create_engine("onnxruntime-cpu").load(path)
    np.testing.assert_array_equal(graph.run({"x": X})["y"], [[2.0, -4.0, 75.0]])


def test_an_engine_is_built_once_and_then_taken_from_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tensorrt = install(monkeypatch, tmp_path / "cache")
    path = doubling(tmp_path / "g.onnx")
    for _ in range(2):
        graph = create_engine("tensorrt").load(path)
        np.testing.assert_array_equal(graph.run({"x": X})["y"], 2.0 * X)
    assert tensorrt.builds == 1
    names = sorted(path.name.split("-")[0] for path in (tmp_path / "cache/smart_caption_ros/tensorrt").iterdir())
    assert names == ["g", "timings"]


def test_another_graph_version_gpu_or_weight_file_is_another_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = doubling(tmp_path / "g.onnx")
    plans = []

    def remember(**changes: str) -> None:
        install(monkeypatch, tmp_path / "cache", **changes)
        plans.append(TensorRtEngine(may_build=False).plan_path(path))

    remember()
    remember()
    assert plans[0] == plans[1]
    remember(version="10.4.0")
    remember(device="Other GPU")
    doubling(path, batch=1)
    remember()
    for factor in (2, 3):  # weights in another file: the graph itself stays as it is
        onnx.save(onnx.load(doubling(path, factor=factor)), path, save_as_external_data=True, size_threshold=0,
                  location="weights")  # fmt: skip
        remember()
    assert len(set(plans)) == 6


def test_a_damaged_engine_is_built_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tensorrt = install(monkeypatch, tmp_path / "cache")
    path = doubling(tmp_path / "g.onnx")
    engine = TensorRtEngine(may_build=True)
    engine.load(path)
    engine.plan_path(path).write_bytes(b"cut off")
    with pytest.raises(EngineError, match=r"is damaged; run `smart-caption bundle build`"):
        TensorRtEngine(may_build=False).load(path)
    engine.load(path)
    assert tensorrt.builds == 2


def test_a_build_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tensorrt = install(monkeypatch, tmp_path / "cache")
    tensorrt.cannot_build = True
    with pytest.raises(EngineError, match=r"cannot build .*g\.onnx"):
        create_engine("tensorrt").load(doubling(tmp_path / "g.onnx"))
    assert not cache_folder().exists()


def test_a_build_that_is_cancelled_ends_at_the_next_step_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tensorrt = install(monkeypatch, tmp_path / "cache")
    cancelled = threading.Event()
    tensorrt.on_step = cancelled.set
    path = doubling(tmp_path / "g.onnx")
    with pytest.raises(BuildCancelledError, match=r"^the build of the engine of g\.onnx was cancelled$"):
        create_engine("tensorrt", is_cancelled=cancelled.is_set).load(path)
    assert (tensorrt.builds, tensorrt.cancelled_builds) == (0, 1)
    assert not cache_folder().exists()
    with pytest.raises(BuildCancelledError):
        create_engine("tensorrt", is_cancelled=cancelled.is_set).load(path)
    assert tensorrt.cancelled_builds == 1, "a build that is cancelled before it starts does not start"
    create_engine("tensorrt").load(path)
    assert tensorrt.builds == 1


def test_ctrl_c_cancels_a_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tensorrt = install(monkeypatch, tmp_path / "cache")
    interrupt_at_first_step(tensorrt)
    with pytest.raises(KeyboardInterrupt):
        create_engine("tensorrt").load(doubling(tmp_path / "g.onnx"))
    assert (tensorrt.builds, tensorrt.cancelled_builds) == (0, 1)
    assert not cache_folder().exists()


def test_a_cache_that_cannot_be_written_costs_the_next_start_and_not_this_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    install(monkeypatch, tmp_path / "cache")
    graph = create_engine("tensorrt").load(doubling(tmp_path / "g.onnx"))
    np.testing.assert_array_equal(graph.run({"x": X})["y"], 2.0 * X)
    assert "cannot be kept" in caplog.text


def test_what_the_parser_complains_of_is_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path)
    path = tmp_path / "g.onnx"
    nodes = [onnx.helper.make_node("Nonsense", ["x"], ["y"])]
    save(path, nodes, [("x", FLOAT, [1])], [("y", FLOAT, [1])], {})
    with pytest.raises(EngineError, match=r"cannot parse .*g\.onnx: .*Nonsense"):
        create_engine("tensorrt").load(path)
    path.write_bytes(b"no graph")
    with pytest.raises(EngineError, match=r"g\.onnx cannot be loaded: .* is not an ONNX graph"):
        create_engine("tensorrt").load(path)


def test_a_bundle_without_the_static_form_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bundle_copy: Path
) -> None:
    manifest = json.loads((bundle_copy / "manifest.json").read_text())
    manifest["files"].pop("captioner_static.onnx", None)
    (bundle_copy / "manifest.json").write_text(json.dumps(manifest))
    install(monkeypatch, tmp_path)
    with pytest.raises(EngineError, match=r"runs captioner_static\.onnx, which .* lacks; export the bundle again"):
        Captioner.from_bundle(bundle_copy, engine="tensorrt")


def test_auto_takes_tensorrt_once_its_engines_are_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_bundle: Path
) -> None:
    tensorrt = install(monkeypatch, tmp_path)
    waiting = Captioner.from_bundle(tiny_bundle)
    assert "CPUExecutionProvider" in waiting.engine
    (fallback,) = waiting.engine_fallbacks
    assert fallback.startswith(
        "not tensorrt: the engine of vision.onnx for tensorrt 10.3.0 (Fake GPU) has not been built"
    )
    assert f"auto took onnxruntime-cpu, the fastest that works here; {fallback}" in waiting.engine_choice
    assert tensorrt.builds == 0
    Captioner.from_bundle(tiny_bundle, engine="tensorrt")
    auto = Captioner.from_bundle(tiny_bundle)
    assert (auto.engine, auto.graph) == ("tensorrt 10.3.0 (Fake GPU)", "captioner_static.onnx")
    assert "auto took tensorrt, the fastest that works here" in auto.engine_choice
    assert tensorrt.builds == 2


def test_available_engines_lists_tensorrt_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path)
    reports = {report.name: report for report in available_engines()}
    assert reports["tensorrt"].available
    assert reports["tensorrt"].detail == "tensorrt 10.3.0 (Fake GPU)"
