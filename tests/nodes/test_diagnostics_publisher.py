"""Diagnostics are published by diagnostic_updater where it is there, and by this package where it is not."""

import time

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter

from smart_caption_ros.nodes import diagnostics_publisher
from smart_caption_ros.nodes.diagnostics_publisher import DiagnosticsPublisher

WARNING = DiagnosticStatus(
    name="robot/node: captions of front",
    level=DiagnosticStatus.WARN,
    message="old images",
    hardware_id="front",
    values=[KeyValue(key="images", value="3")],
)
FINE = DiagnosticStatus(name="robot/node: captions", level=DiagnosticStatus.OK, message="captioning")


class FakeStatus(DiagnosticStatus):
    def summary(self, level, message):
        self.level, self.message = level, message


class FakeUpdater:
    """What is used of ROS's diagnostic_updater, by the source of its branch ros2-jazzy: it is not on PyPI."""

    def __init__(self, node, period):
        self.tasks = []
        self.publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 1)
        self.period = float(node.declare_parameter("diagnostic_updater.period", period).value)
        self.timer = node.create_timer(0.01, lambda: pytest.fail("two timers publish"))
        full = node.declare_parameter("diagnostic_updater.use_fqn", False).value
        self.node_name = node.get_fully_qualified_name() if full else node.get_name()

    def setHardwareID(self, hwid):  # noqa: N802 -- its name
        self.hwid = hwid

    def add(self, name, task):
        self.tasks.append((name, task))

    def force_update(self):
        message = DiagnosticArray()
        message.header.stamp.sec = 1
        for name, task in self.tasks:
            filled = task(FakeStatus(name=name, hardware_id=self.hwid))
            fields = {field: getattr(filled, field) for field in ("level", "message", "hardware_id", "values")}
            message.status.append(DiagnosticStatus(name=f"{self.node_name}: {name}", **fields))
        self.publisher.publish(message)


class Bench:
    """A node in a namespace, and the diagnostics that arrive from it."""

    def __init__(self, context):
        self.context = context
        self.arrays = []
        self.user = Node("user", context=context)
        self.user.create_subscription(DiagnosticArray, "/diagnostics", self.arrays.append, 10)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.user)

    def make_node(self, **overrides):
        parameters = [Parameter(name.replace("__", "."), value=value) for name, value in overrides.items()]
        node = Node("node", namespace="robot", context=self.context, parameter_overrides=parameters)
        self.executor.add_node(node)
        return node

    def next_array(self):
        self.arrays.clear()
        end_s = time.monotonic() + 30
        while time.monotonic() < end_s:
            self.executor.spin_once(timeout_sec=0.1)
            if self.arrays:
                return self.arrays[0]
        raise AssertionError("no diagnostics")


@pytest.fixture
def bench(node):
    bench = Bench(node.context)
    yield bench
    bench.executor.shutdown()


@pytest.mark.parametrize("updater", [None, FakeUpdater], ids=["own publisher", "diagnostic_updater"])
def test_the_same_statuses_arrive_with_and_without_diagnostic_updater(bench, monkeypatch, updater):
    monkeypatch.setattr(diagnostics_publisher, "Updater", updater)
    monkeypatch.setattr(diagnostics_publisher, "PERIOD_S", 0.05)
    DiagnosticsPublisher(bench.make_node(), lambda: [FINE, WARNING])
    array = bench.next_array()
    assert array.header.stamp.sec > 0
    first, second = array.status
    assert (first.name, first.level, first.message) == (FINE.name, FINE.level, FINE.message)
    assert second == WARNING


def test_the_parameters_of_diagnostic_updater_hold(bench, monkeypatch):
    monkeypatch.setattr(diagnostics_publisher, "Updater", FakeUpdater)
    overrides = {"diagnostic_updater__period": 0.05, "diagnostic_updater__use_fqn": True}
    monkeypatch.setattr(diagnostics_publisher, "PERIOD_S", 3600.0)
    DiagnosticsPublisher(bench.make_node(**overrides), lambda: [FINE])
    assert [status.name for status in bench.next_array().status] == ["/robot/node: captions"]
