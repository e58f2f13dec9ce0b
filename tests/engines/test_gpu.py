"""The engines of NVIDIA GPUs on real hardware: the captions and outputs of the CPU."""

import pytest

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.captioning.bundle import STATIC_GRAPH, VISION_GRAPH, Bundle
from smart_caption_ros.engines import available_engines
from smart_caption_ros.engines.tensorrt import TensorRtEngine
from smart_caption_ros.measuring.agreement import compare_engines
from tests.frames import blobs

pytestmark = pytest.mark.needs_gpu

GPU_ENGINES = ("tensorrt", "onnxruntime-tensorrt", "onnxruntime-cuda")


@pytest.fixture(params=GPU_ENGINES)
def engine(request, tmp_path, monkeypatch):
    """A GPU engine of this machine, with an empty cache of built engines."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    report = next(engine_report for engine_report in available_engines() if engine_report.name == request.param)
    if not report.available:
        pytest.skip(f"{report.name}: {report.detail}; {report.remedy}")
    return str(request.param)


def test_at_least_one_engine_uses_the_gpu():
    reports = {report.name: report for report in available_engines()}
    assert any(reports[name].available for name in GPU_ENGINES), [reports[name].detail for name in GPU_ENGINES]


def test_captions_are_those_of_the_cpu(engine, tiny_bundle):
    ours = Captioner.from_bundle(tiny_bundle, engine=engine)
    theirs = Captioner.from_bundle(tiny_bundle, engine="onnxruntime-cpu", threads=1)
    for seed in range(6):
        found, expected = ours.caption(blobs(seed)), theirs.caption(blobs(seed))
        assert found.text == expected.text
        assert found.score == pytest.approx(expected.score, abs=1e-3)


def test_auto_takes_an_engine_of_tensorrt_that_was_built_on_purpose(tiny_bundle, tmp_path, monkeypatch):
    pytest.importorskip("tensorrt")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Captioner.from_bundle(tiny_bundle, engine="tensorrt")
    assert "tensorrt" not in Captioner.from_bundle(tiny_bundle).engine
    bundle, engine = Bundle.load(tiny_bundle), TensorRtEngine(may_build=False)
    for name in (VISION_GRAPH, STATIC_GRAPH):
        engine.offer_to_auto(tiny_bundle / name, bundle.read_graph(name))
    assert Captioner.from_bundle(tiny_bundle).engine == engine.description


def test_every_engine_agrees_with_the_reference_on_the_default_bundle():
    comparisons = compare_engines(Bundle.load(), frames=4)
    assert any(comparison.engine in GPU_ENGINES for comparison in comparisons)
    assert all(comparison.agrees for comparison in comparisons)
