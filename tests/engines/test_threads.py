"""The number of CPU threads is one number for all that works for a caption."""

import os
import signal

import cv2
import numpy as np
import onnxruntime
import pytest

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.detection.detector import Detector


@pytest.fixture(autouse=True)
def _threads_of_opencv():
    before = cv2.getNumThreads()
    yield
    cv2.setNumThreads(before)


@pytest.fixture
def sessions(monkeypatch):
    """The options of every session that is made."""
    made = []
    original = onnxruntime.InferenceSession

    def session(model, options, **settings):
        made.append(options)
        return original(model, options, **settings)

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    return made


def spins(options):
    try:
        return options.get_session_config_entry("session.intra_op.allow_spinning") != "0"
    except RuntimeError:  # not set: ONNX Runtime spins by default
        return True


def test_the_threads_are_those_of_every_graph_and_of_opencv(bundle_with_detector, sessions):
    captioner = Captioner.from_bundle(bundle_with_detector, "onnxruntime-cpu", threads=1)
    assert isinstance(captioner.detector, Detector)
    assert len(sessions) >= 3
    assert {options.intra_op_num_threads for options in sessions} == {1}
    assert {options.inter_op_num_threads for options in sessions} == {1}
    assert cv2.getNumThreads() == 1


@pytest.mark.parametrize("spinning", [True, False])
def test_idle_threads_poll_only_where_that_is_wanted(spinning, tiny_bundle, sessions):
    captioner = Captioner.from_bundle(tiny_bundle, "onnxruntime-cpu", threads=2, spinning=spinning)
    assert {spins(options) for options in sessions} == {spinning}
    captioner.caption(np.zeros((8, 8, 3), np.uint8))


@pytest.fixture
def signal_handlers():
    """Restores the handlers: a command leaves the signals ignored, because its process ends."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.needs_ros
def test_a_nodes_process_starts_no_threads_for_numpys_products(monkeypatch, signal_handlers):
    from smart_caption_ros.nodes import caption_command, running

    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    monkeypatch.setattr(running, "run_node", lambda *ignored: int(os.environ["OPENBLAS_NUM_THREADS"]))
    assert caption_command.main([]) == 7, "what the user has set holds"
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    assert caption_command.main([]) == 1
