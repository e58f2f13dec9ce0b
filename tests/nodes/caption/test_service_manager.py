"""systemd is told when a node is ready, that it is alive, and that it stops."""

import os
import socket
import threading
import time

import pytest

pytest.importorskip("sdnotify", reason="sdnotify is not installed")

from rclpy.executors import MultiThreadedExecutor
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image

from smart_caption_ros.nodes.caption import node as caption_node
from smart_caption_ros.nodes.caption import service_manager, worker
from smart_caption_ros.nodes.caption.node import CaptionNode
from smart_caption_ros.nodes.caption.service_manager import ServiceReport, watchdog_s
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage, image_fields
from tests.nodes.waiting import wait_for


class Systemd:
    """The socket that systemd gives a service."""

    def __init__(self, address):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(address.replace("@", "\0", 1))
        self.heard = []

    def hears(self, assignment):
        """Return whether the assignment was received since the last :meth:`forget`."""
        while True:
            try:
                self.heard += self._socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                return assignment in self.heard

    def forget(self):
        self.hears("")
        self.heard.clear()

    def close(self):
        self._socket.close()


@pytest.mark.parametrize(
    ("watchdog", "is_served"),
    [
        ({"WATCHDOG_USEC": "300000", "WATCHDOG_PID": str(os.getpid())}, True),
        ({"WATCHDOG_USEC": "300000"}, True),
        ({"WATCHDOG_USEC": "300000", "WATCHDOG_PID": "1"}, False),
        ({"WATCHDOG_USEC": "0"}, False),
        ({"WATCHDOG_USEC": "soon"}, False),
        ({}, False),
    ],
)
def test_only_the_process_that_is_watched_serves_the_watchdog(monkeypatch, watchdog, is_served):
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in watchdog.items():
        monkeypatch.setenv(name, value)
    assert watchdog_s() == (0.3 if is_served else None)


def test_a_service_manager_that_has_gone_or_a_missing_package_does_not_end_the_node(node, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("NOTIFY_SOCKET", f"{tmp_path}/gone")
    ServiceReport(node, state=str, is_ready=lambda: True, problem=str).stop()
    monkeypatch.setattr(service_manager, "sdnotify", None)
    ServiceReport(node, state=str, is_ready=lambda: True, problem=str).stop()
    assert "pip install sdnotify" in capfd.readouterr().err


class GatedCaptioner(FakeCaptioner):
    """Does not end its work while `gate` is clear."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def caption(self, image_bgr):
        self.gate.wait(20)
        return super().caption(image_bgr)


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    """A service manager for this process, with a watchdog time of 0.3 s."""
    monkeypatch.setenv("NOTIFY_SOCKET", f"{tmp_path}/notify")
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    made = Systemd(f"{tmp_path}/notify")
    yield made
    made.close()


def test_a_caption_node_is_ready_when_active_and_is_watched_while_its_worker_goes_on(node, systemd, monkeypatch):
    for module in (caption_node, worker):
        monkeypatch.setattr(module, "WORK_TIMEOUT_S", 0.1)
    captioner, may_load = GatedCaptioner(), threading.Event()

    def load(*given):
        may_load.wait(20)
        return captioner

    watched = CaptionNode(
        load_captioner=load,
        load_coverage=lambda *chosen: FakeCoverage(),
        context=node.context,
        parameter_overrides=[Parameter("max_age_s", value=0.0)],
    )
    images = node.create_publisher(Image, "image", 10)
    executor = MultiThreadedExecutor(num_threads=4, context=node.context)
    executor.add_node(watched)
    spinning = threading.Thread(target=executor.spin, daemon=True)
    spinning.start()

    wait_for(lambda: systemd.hears("WATCHDOG=1") and systemd.hears("STATUS=configuring"), "watchdog while it loads")
    time.sleep(0.5)  # longer than the limits of the work on an image
    systemd.forget()
    wait_for(lambda: systemd.hears("WATCHDOG=1"), "watchdog while it loads for long")
    assert not systemd.hears("READY=1")

    may_load.set()
    wait_for(lambda: systemd.hears("READY=1") and systemd.hears("STATUS=active"), "node that is ready")
    systemd.forget()
    wait_for(lambda: systemd.hears("WATCHDOG=1") and systemd.heard.count("WATCHDOG=1") >= 3, "watchdog")
    assert not systemd.hears("READY=1"), "it is said once"

    captioner.gate.clear()
    wait_for(images.get_subscription_count, "subscription")

    def is_stuck():
        images.publish(Image(**image_fields(100)))
        systemd.hears("")
        return any(message.startswith("STATUS=an image has been in work") for message in systemd.heard)

    wait_for(is_stuck, "image that is stuck")
    systemd.forget()
    time.sleep(0.5)
    assert not systemd.hears("WATCHDOG=1")
    captioner.gate.set()
    wait_for(lambda: systemd.hears("WATCHDOG=1"), "watchdog of the node that goes on")

    watched.interrupt()
    assert systemd.hears("STOPPING=1")
    executor.shutdown()
    spinning.join()
    watched.close()
