"""systemd hears when a node is ready, whether it goes on, and that it stops."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

import rclpy
from rclpy.context import Context
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image

from smart_caption_ros.captioning import Caption
from smart_caption_ros.nodes.caption.node import CaptionNode
from smart_caption_ros.nodes.caption.service_manager import ServiceManager, ServiceReport
from smart_caption_ros.nodes.demo.processes import free_domain_id
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage, image_fields
from tests.nodes.waiting import wait_for

pytestmark = pytest.mark.needs_ros


class Systemd:
    """The socket that systemd gives a service."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(address.replace("@", "\0", 1))
        self.heard: list[str] = []

    def hears(self, assignment: str) -> bool:
        """Whether the assignment has come since the last :meth:`forget`."""
        while True:
            try:
                self.heard += self._socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                return assignment in self.heard

    def forget(self) -> None:
        self.hears("")
        self.heard.clear()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{tmp_path}/notify" if request.param == "path" else f"@smart-caption-{os.getpid()}"


def test_a_message_arrives_at_a_socket_in_a_folder_and_at_an_abstract_one(address: str) -> None:
    systemd = Systemd(address)
    manager = ServiceManager.of_process({"NOTIFY_SOCKET": address})
    assert manager is not None
    manager.send("READY=1", "STATUS=active")
    assert systemd.hears("READY=1")
    assert systemd.heard == ["READY=1", "STATUS=active"]
    systemd.close()


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1234"}])
def test_without_a_unix_socket_there_is_no_service_manager(environment: dict[str, str]) -> None:
    assert ServiceManager.of_process(environment) is None


@pytest.mark.parametrize(
    ("watchdog", "time_s"),
    [
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_only_the_process_that_is_watched_serves_the_watchdog(watchdog: dict[str, str], time_s: float | None) -> None:
    manager = ServiceManager.of_process({"NOTIFY_SOCKET": "/run/systemd/notify", **watchdog})
    assert manager is not None
    assert manager.watchdog_s == time_s


def test_a_service_manager_that_has_gone_is_a_warning(
    node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", f"{tmp_path}/gone")
    ServiceReport(node, state=str, is_ready=lambda: True, problem=str).stop()
    assert "systemd cannot be told STOPPING=1: No such file or directory" in capfd.readouterr().err


class GatedCaptioner(FakeCaptioner):
    """Does not end its work while `gate` is clear."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def caption(self, image_bgr: NDArray[np.uint8]) -> Caption:
        self.gate.wait(20)
        return super().caption(image_bgr)


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Systemd]:
    """The service manager of this process, whose watchdog waits for 0.3 s."""
    monkeypatch.setenv("NOTIFY_SOCKET", f"{tmp_path}/notify")
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    made = Systemd(f"{tmp_path}/notify")
    yield made
    made.close()


def test_a_caption_node_is_ready_when_active_and_is_watched_while_its_worker_goes_on(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    context = Context()
    rclpy.init(context=context, domain_id=free_domain_id())
    captioner, may_load = GatedCaptioner(), threading.Event()

    def load(*given: Any) -> FakeCaptioner:
        may_load.wait(20)
        return captioner

    node = CaptionNode(
        load_captioner=load,
        load_coverage=lambda *chosen: FakeCoverage(),
        context=context,
        parameter_overrides=[Parameter("work_timeout_s", value=0.1), Parameter("max_age_s", value=0.0)],
    )
    camera = Node("camera", context=context)
    images = camera.create_publisher(Image, "image", 10)
    executor = MultiThreadedExecutor(num_threads=4, context=context)
    executor.add_node(node)
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

    def is_stuck() -> bool:
        images.publish(Image(**image_fields(100)))
        systemd.hears("")
        return any(message.startswith("STATUS=an image has been in work") for message in systemd.heard)

    wait_for(is_stuck, "image that is stuck")
    systemd.forget()
    time.sleep(0.5)
    assert not systemd.hears("WATCHDOG=1")
    captioner.gate.set()
    wait_for(lambda: systemd.hears("WATCHDOG=1"), "watchdog of the node that goes on")

    node.interrupt()
    assert systemd.hears("STOPPING=1")
    executor.shutdown()
    spinning.join()
    node.close()
    context.try_shutdown()


def test_the_watchdog_is_not_served_by_an_executor_that_hangs(node: Any, systemd: Systemd) -> None:
    ServiceReport(node, state=str, is_ready=lambda: True, problem=str)
    time.sleep(0.4)
    assert not systemd.hears("READY=1"), "nothing spins the node"
