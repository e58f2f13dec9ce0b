"""The soak runs the real caption node, and passes."""

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from benchmarks.caption_listener import NodeSettings
from benchmarks.node_soak.cycles import run_cycles
from benchmarks.node_soak.run import Soak, run_soak

pytestmark = pytest.mark.needs_ros


@pytest.fixture
def node(tiny_bundle):
    return NodeSettings(tiny_bundle, engine="onnxruntime-cpu", threads=1)


@pytest.mark.long
def test_the_node_passes_a_short_soak(node, tmp_path):
    # Small images, half of them bad; if every other image leaked, the limit of the memory would be exceeded.
    soak = Soak(
        node, size=(320, 240), rate_hz=20.0, compressed=True, seconds=6.0, warm_up_s=2.0, bad_share=0.5,
        disturb_every_s=0.3, max_slope_mb_per_minute=120.0, seed=3,
    )  # fmt: skip
    result = run_soak(soak, tmp_path)
    # On a busy machine the run is too short for a slope.
    assert [problem for problem in result["problems"] if "memory" not in problem] == []
    assert result["captions_by_status"]["ok"] > 0
    assert result["captions_by_status"]["error"] > 0
    assert result["counts_of_the_node"]["lost"] > 0
    assert sum(result["disturbances"].values()) > 0
    assert result["cpu_seconds"] > 0


@pytest.mark.long
def test_lifecycle_cycles_do_not_grow_the_memory(node, tmp_path):
    result = run_cycles(node, cycles=6, warm_up=3, folder=tmp_path)
    assert result["problems"] == []
    assert result["resident_mb_after_cleanup"]["last"] > 0
