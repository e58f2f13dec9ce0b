"""What runs without TensorRT: cancelling a build, and the choice of `auto`; test_gpu.py has the rest."""

import signal
import threading
import time

import pytest

from smart_caption_ros.captioning import Captioner, EngineError
from smart_caption_ros.engines.base import BuildCancelledError
from smart_caption_ros.engines.tensorrt import _run_interruptibly
from tests.engines.small_graphs import changed_manifest
from tests.engines.stand_in import StandIn


@pytest.fixture
def heard_sigint():
    """SIGINT raises KeyboardInterrupt, also in a process of the background, which a shell starts with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard_sigint")
def test_ctrl_c_ends_a_build_that_runs_on_another_thread():
    started, interrupted = threading.Event(), threading.Event()

    def build():
        started.set()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert interrupted.wait(10)
        time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        _run_interruptibly(build, interrupted.set)
    assert started.is_set()
    assert interrupted.is_set()


def test_a_build_ends_where_it_is_cancelled(monkeypatch, tiny_bundle):
    tensorrt, cancelled = StandIn(monkeypatch), threading.Event()
    tensorrt.on_build = cancelled.set
    with pytest.raises(BuildCancelledError, match=r"^the build of the engine of vision\.onnx was cancelled$"):
        Captioner.from_bundle(tiny_bundle, engine="tensorrt", is_cancelled=cancelled.is_set)
    assert tensorrt.builds == 0


def test_a_bundle_without_the_static_form_is_refused_with_what_to_do(monkeypatch, bundle_copy):
    with changed_manifest(bundle_copy) as manifest:
        manifest["files"].pop("captioner_static.onnx", None)
    StandIn(monkeypatch)
    with pytest.raises(EngineError, match=r"runs captioner_static\.onnx, which .* lacks; export the bundle again"):
        Captioner.from_bundle(bundle_copy, engine="tensorrt")


def test_auto_takes_no_engine_that_was_not_built_for_it(monkeypatch, tiny_bundle):
    tensorrt = StandIn(monkeypatch)
    chosen = Captioner.from_bundle(tiny_bundle)
    assert "CPUExecutionProvider" in chosen.engine
    assert chosen.engine_fallbacks == ("not tensorrt: the engine of vision.onnx has not been built",)
    assert (
        f"auto took onnxruntime-cpu, the fastest that works here; {chosen.engine_fallbacks[0]}" in chosen.engine_choice
    )
    assert tensorrt.builds == 0
