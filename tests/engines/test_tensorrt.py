"""The TensorRT engine against fakes of TensorRT and CUDA that hold it to the documented calls.

Nothing here has seen the real libraries: what is shown is the order of calls, the cache and what becomes of failures.
"""

import gc
import json
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest

from smart_caption_ros.captioning import Captioner, EngineError
from smart_caption_ros.engines import available_engines, create_engine
from smart_caption_ros.engines.errors import BuildCancelledError
from smart_caption_ros.engines.tensorrt import TensorRtEngine
from smart_caption_ros.files import cache_folder
from smart_caption_ros.measuring.agreement import golden_frames
from tests.engines.fake_tensorrt import FakeGpu, install, interrupt_at_first_step
from tests.engines.small_graphs import FLOAT, UINT8, add_static_captioner, doubling, save

X = np.array([[1, 2, 3]], np.uint8)


@pytest.mark.parametrize(
    ("version", "flag"), [("10.3.0", True), ("11.0.0", True), ("12.0.0", False)], ids=["10.3", "11", "flag removed"]
)
def test_a_graph_is_built_captured_and_replayed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, flag: bool
) -> None:
    gpu = FakeGpu()
    install(monkeypatch, tmp_path / "cache", version, gpu, strongly_typed_flag=flag)
    engine = create_engine("tensorrt")
    graph = engine.load(doubling(tmp_path / "g.onnx"))
    assert engine.description == f"tensorrt {version} (Fake GPU)"
    assert (graph.input_names, graph.output_names, graph.mode) == (("x",), ("y",), "CUDA graph")
    for row in (X, X + 5):
        np.testing.assert_array_equal(graph.run({"x": row})["y"], 2.0 * row)
    assert gpu.replays == 2


def test_weights_in_8_bits_are_unpacked_before_the_parser_sees_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path / "cache")
    nodes = [
        onnx.helper.make_node("Cast", ["x"], ["floats"], to=FLOAT),
        onnx.helper.make_node("DequantizeLinear", ["stored", "scale"], ["factors"], axis=0),
        onnx.helper.make_node("Mul", ["floats", "factors"], ["y"]),
    ]
    stored = {"stored": np.array([2, -4, 100], np.int8), "scale": np.array([1, 0.5, 0.25], np.float32)}
    shape = ["batch", 3]
    path = save(tmp_path / "g.onnx", nodes, [("x", UINT8, shape)], [("y", FLOAT, shape)], stored)
    before = path.read_bytes()
    graph = create_engine("tensorrt").load(path)
    np.testing.assert_array_equal(graph.run({"x": X})["y"], [[2.0, -4.0, 75.0]])
    assert path.read_bytes() == before


def test_where_a_stream_cannot_be_captured_it_is_enqueued_and_the_reason_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path, gpu=FakeGpu(can_capture=False))
    graph = create_engine("tensorrt").load(doubling(tmp_path / "g.onnx"))
    assert graph.mode == "no CUDA graph: cudaStreamBeginCapture failed: cudaErrorStreamCaptureUnsupported"
    np.testing.assert_array_equal(graph.run({"x": X})["y"], 2.0 * X)


def test_an_engine_is_built_once_and_then_taken_from_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tensorrt = install(monkeypatch, tmp_path / "cache")
    path = doubling(tmp_path / "g.onnx")
    create_engine("tensorrt").load(path)
    create_engine("tensorrt").load(path)
    assert tensorrt.builds == 1
    names = sorted(each.name.split("-")[0] for each in (tmp_path / "cache/smart_caption_ros/tensorrt").iterdir())
    assert names == ["g", "timings"]


def test_another_graph_version_gpu_or_weight_file_is_another_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = doubling(tmp_path / "g.onnx")
    plans = []

    def remember(**changes: object) -> None:
        install(monkeypatch, tmp_path / "cache", **changes)  # type: ignore[arg-type]
        plans.append(TensorRtEngine(may_build=False).plan_path(path))

    remember()
    remember()
    assert plans[0] == plans[1]
    remember(version="10.4.0")
    remember(gpu=FakeGpu("Other GPU"))
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
    with pytest.raises(EngineError, match=r"is damaged; run `smart-caption build-engine`"):
        TensorRtEngine(may_build=False).load(path)
    assert np.array_equal(engine.load(path).run({"x": X})["y"], 2.0 * X)
    assert tensorrt.builds == 2


def test_a_damaged_timing_cache_is_begun_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path / "cache")
    engine = TensorRtEngine(may_build=True)
    path = doubling(tmp_path / "g.onnx")
    engine.build(path)
    (timings,) = (cache_folder() / "tensorrt").glob("timings-*")
    assert timings.read_bytes() == b"timed;"
    engine.build(path)
    assert timings.read_bytes() == b"timed;timed;"
    timings.write_bytes(b"spoilt")
    engine.build(path)
    assert timings.read_bytes() == b"timed;"


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
    steps = []

    def on_step() -> None:
        steps.append(threading.current_thread())
        if len(steps) == 2:
            cancelled.set()

    tensorrt.on_step = on_step
    path = doubling(tmp_path / "g.onnx")
    with pytest.raises(BuildCancelledError, match=r"^the build of the engine of g\.onnx was cancelled$"):
        create_engine("tensorrt", is_cancelled=cancelled.is_set).load(path)
    assert (len(steps), tensorrt.builds, tensorrt.cancelled_builds) == (2, 0, 1)
    assert not cache_folder().exists()
    with pytest.raises(BuildCancelledError):
        create_engine("tensorrt", is_cancelled=cancelled.is_set).load(path)
    assert len(steps) == 2, "a build that is cancelled before it starts does not start"
    graph = create_engine("tensorrt").load(path)
    np.testing.assert_array_equal(graph.run({"x": X})["y"], 2.0 * X)


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


@pytest.mark.parametrize(
    ("inputs", "complaint"),
    [
        ({"x": X.astype(np.float32)}, "x must be uint8"),
        ({"x": X[:, :2]}, r"x must be uint8 \(1, 3\), not uint8 \(1, 2\)"),
        ({"z": X}, "it takes x, not z"),
    ],
)
def test_a_wrong_input_is_refused_before_it_reaches_the_gpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, inputs: dict[str, np.ndarray], complaint: str
) -> None:
    install(monkeypatch, tmp_path)
    graph = create_engine("tensorrt").load(doubling(tmp_path / "g.onnx"))
    with pytest.raises(EngineError, match=complaint):
        graph.run(inputs)


def test_the_gpus_memory_is_given_back_with_the_graph(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gpu = FakeGpu()
    install(monkeypatch, tmp_path, gpu=gpu)
    graph = create_engine("tensorrt").load(doubling(tmp_path / "g.onnx"))
    assert gpu.memory
    assert gpu.streams
    del graph
    gc.collect()
    assert not gpu.memory
    assert not gpu.streams


def test_a_bundle_without_the_static_form_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bundle_copy: Path
) -> None:
    manifest = json.loads((bundle_copy / "manifest.json").read_text())
    manifest["files"].pop("captioner_static.onnx", None)
    (bundle_copy / "manifest.json").write_text(json.dumps(manifest))
    install(monkeypatch, tmp_path)
    with pytest.raises(EngineError, match=r"runs captioner_static\.onnx, which .* lacks; export the bundle again"):
        Captioner.from_bundle(bundle_copy, engine="tensorrt")


def test_a_bundle_is_captioned_frame_by_frame_and_auto_takes_tensorrt_once_its_engines_are_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bundle_copy: Path
) -> None:
    add_static_captioner(bundle_copy)
    tensorrt = install(monkeypatch, tmp_path)
    waiting = Captioner.from_bundle(bundle_copy)
    assert "CPUExecutionProvider" in waiting.engine
    assert "auto took onnxruntime-cpu" in waiting.engine_choice
    assert "not tensorrt: the engine of " in waiting.engine_choice
    assert "has not been built; run `smart-caption build-engine`" in waiting.engine_choice
    (fallback,) = waiting.engine_fallbacks
    assert fallback.startswith(
        "not tensorrt: the engine of vision.onnx for tensorrt 10.3.0 (Fake GPU) has not been built"
    )
    assert tensorrt.builds == 0

    frames = [np.full((30, 40, 3), shade, np.uint8) for shade in (10, 120, 250)]
    captioner = Captioner.from_bundle(bundle_copy, engine="tensorrt")
    assert tensorrt.builds == 2
    assert captioner.caption(frames[0]).text == "w4 w5"
    assert [alternative.text for alternative in captioner.caption(frames[0]).alternatives] == ["w6"]
    assert captioner.caption_batch(frames) == ["w4 w5"] * 3
    auto = Captioner.from_bundle(bundle_copy)
    assert auto.engine == "tensorrt 10.3.0 (Fake GPU)"
    assert "captioner_static.onnx: CUDA graph; auto took tensorrt, the fastest that works here" in auto.engine_choice

    # What one engine says of a frame is what another one says, through the same static graph.
    cpu = Captioner(auto.bundle, create_engine("onnxruntime-cpu"), "captioner_static.onnx")
    for frame in frames:
        ours, theirs = auto.caption(frame), cpu.caption(frame)
        assert [word.log_probability for word in ours.words] == [word.log_probability for word in theirs.words]
    assert tensorrt.builds == 2


def test_the_exported_static_form_says_through_tensorrt_what_the_loop_form_says_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_bundle: Path
) -> None:
    install(monkeypatch, tmp_path)
    theirs = Captioner.from_bundle(tiny_bundle, engine="onnxruntime-cpu", threads=1)
    ours = Captioner.from_bundle(tiny_bundle, engine="tensorrt")
    assert (theirs.graph, ours.graph) == ("captioner.onnx", "captioner_static.onnx")
    for frame in golden_frames(6, 60, 40):
        expected, found = theirs.caption(frame), ours.caption(frame)
        assert found.text == expected.text
        assert found.score == pytest.approx(expected.score, abs=1e-4)
        assert [word.box_xyxy for word in found.words] == [word.box_xyxy for word in expected.words]
        scores = [alternative.score for alternative in found.alternatives]
        assert scores == sorted(scores, reverse=True)


def test_the_doctor_lists_tensorrt_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path)
    reports = {report.name: report for report in available_engines()}
    assert reports["tensorrt"].available
    assert reports["tensorrt"].detail == "tensorrt 10.3.0 (Fake GPU)"
