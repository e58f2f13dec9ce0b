"""Diagnostics are published by diagnostic_updater where it is there, and by this package where it is not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter

from smart_caption_ros.nodes import diagnostics_publisher
from smart_caption_ros.nodes.demo.processes import free_domain_id
from smart_caption_ros.nodes.diagnostics_publisher import DiagnosticsPublisher
from tests.nodes.fake_diagnostic_updater import HumbleUpdater, JazzyUpdater

pytestmark = pytest.mark.needs_ros

WARNING = DiagnosticStatus(
    name="robot/node: captions of front",
    level=DiagnosticStatus.WARN,
    message="old images",
    hardware_id="front",
    values=[KeyValue(key="images", value="3")],
)
FINE = DiagnosticStatus(name="robot/node: captions", level=DiagnosticStatus.OK, message="captioning")


class Bench:
    """A node in a namespace, and the diagnostics that arrive from it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.arrays: list[DiagnosticArray] = []
        self.user = Node("user", context=context)
        self.user.create_subscription(DiagnosticArray, "/diagnostics", self.arrays.append, 10)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.user)

    def make_node(self, **overrides: Any) -> Node:
        """Make the node with the given parameters."""
        parameters = [Parameter(name.replace("__", "."), value=value) for name, value in overrides.items()]
        node = Node("node", namespace="robot", context=self.context, parameter_overrides=parameters)
        self.executor.add_node(node)
        return node

    def next_array(self) -> DiagnosticArray:
        """Return the next message that is not about the start."""
        self.arrays.clear()
        end_s = time.monotonic() + 30
        while time.monotonic() < end_s:
            self.executor.spin_once(timeout_sec=0.1)
            for array in self.arrays:
                if all(status.message != "Node starting up" for status in array.status):
                    return array
        raise AssertionError("no diagnostics")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    context = Context()
    rclpy.init(context=context, domain_id=free_domain_id())
    bench = Bench(context)
    yield bench
    bench.executor.shutdown()
    context.try_shutdown()


@pytest.mark.parametrize("updater", [None, JazzyUpdater], ids=["own publisher", "diagnostic_updater"])
def test_the_same_statuses_arrive_with_and_without_diagnostic_updater(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, updater: Any
) -> None:
    monkeypatch.setattr(diagnostics_publisher, "Updater", updater)
    publisher = DiagnosticsPublisher(bench.make_node(), lambda: [FINE, WARNING], 0.05)
    array = bench.next_array()
    assert array.header.stamp.sec > 0
    first, second = array.status
    assert (first.name, first.level, first.message) == (FINE.name, FINE.level, FINE.message)
    assert second == WARNING
    publisher.change_period(0.1)
    assert len(bench.next_array().status) == 2


def test_the_parameters_of_diagnostic_updater_hold(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Recorded(JazzyUpdater):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(diagnostics_publisher, "Updater", Recorded)
    overrides = {"diagnostic_updater__period": 0.05, "diagnostic_updater__use_fqn": True}
    DiagnosticsPublisher(bench.make_node(**overrides), lambda: [FINE], 3600.0)
    assert [status.name for status in bench.next_array().status] == ["/robot/node: captions"]
    (updater,) = made
    assert not updater.warned_of_no_hwid
    assert updater.timer not in list(updater.node.timers), "one timer publishes"


def test_the_updater_of_humble_names_the_node_without_its_namespace(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics_publisher, "Updater", HumbleUpdater)
    DiagnosticsPublisher(bench.make_node(), lambda: [FINE, WARNING], 0.05)
    names = [status.name for status in bench.next_array().status]
    assert names == ["node: captions", "node: captions of front"]
