"""Diagnostics are published by diagnostic_updater if it is installed, and otherwise by this package."""

from copy import deepcopy

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter

from smart_caption_ros.nodes import diagnostics_publisher
from smart_caption_ros.nodes.diagnostics_publisher import DiagnosticsPublisher
from tests.nodes.waiting import wait_for

WARNING = DiagnosticStatus(
    name="robot/node: captions of front",
    level=DiagnosticStatus.WARN,
    message="old images",
    hardware_id="front",
    values=[KeyValue(key="images", value="3")],
)
FINE = DiagnosticStatus(name="robot/node: captions", level=DiagnosticStatus.OK, message="captioning")


class FakeUpdater:
    """Stand-in for ROS's diagnostic_updater, which is not on PyPI: the used parts, as in its branch ros2-jazzy."""

    def __init__(self, node, period):
        self.publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 1)
        self.period = float(node.declare_parameter("diagnostic_updater.period", period).value)
        self.timer = node.create_timer(0.01, lambda: pytest.fail("two timers publish"))
        full = node.declare_parameter("diagnostic_updater.use_fqn", False).value
        self.node_name = node.get_fully_qualified_name() if full else node.get_name()

    def publish(self, statuses):
        for status in statuses:
            status.name = f"{self.node_name}: {status.name}"
        message = DiagnosticArray(status=statuses)
        message.header.stamp.sec = 1
        self.publisher.publish(message)


@pytest.fixture
def diagnostics_of(node, monkeypatch):
    """Returns the next diagnostics of a node in a namespace with the given parameters."""
    arrays = []
    node.create_subscription(DiagnosticArray, "/diagnostics", arrays.append, 10)
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)

    def diagnostics_of(statuses, updater, period_s, **overrides):
        monkeypatch.setattr(diagnostics_publisher, "Updater", updater)
        monkeypatch.setattr(diagnostics_publisher, "PERIOD_S", period_s)
        given = [Parameter(f"diagnostic_updater.{name}", value=value) for name, value in overrides.items()]
        made = Node("node", namespace="robot", context=node.context, parameter_overrides=given)
        DiagnosticsPublisher(made, lambda: deepcopy(statuses))
        executor.add_node(made)
        wait_for(lambda: executor.spin_once(timeout_sec=0.1) or arrays)
        return arrays[0]

    yield diagnostics_of
    executor.shutdown()


@pytest.mark.parametrize("updater", [None, FakeUpdater], ids=["own publisher", "diagnostic_updater"])
def test_the_same_statuses_arrive_with_and_without_diagnostic_updater(diagnostics_of, updater):
    array = diagnostics_of([FINE, WARNING], updater, 0.05)
    assert array.header.stamp.sec > 0
    assert array.status == [FINE, WARNING]


def test_the_parameters_of_diagnostic_updater_hold(diagnostics_of):
    array = diagnostics_of([FINE], FakeUpdater, 3600.0, period=0.05, use_fqn=True)
    assert [status.name for status in array.status] == ["/robot/node: captions"]
