"""ROS 2 Humble, by stand-ins that lack what its rclpy lacks: it cannot be installed beside the other versions."""

import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

NODES = Path(__file__).resolve().parents[2] / "smart_caption_ros" / "nodes"


@pytest.fixture
def humble(monkeypatch):
    """The module as Humble imports it."""
    qos_event = ModuleType("rclpy.qos_event")
    qos_event.SubscriptionEventCallbacks = type("SubscriptionEventCallbacks", (), {})
    subscription = ModuleType("rclpy.subscription")
    subscription.Subscription = type("Subscription", (), {})
    monkeypatch.setitem(sys.modules, "rclpy", ModuleType("rclpy"))
    monkeypatch.setitem(sys.modules, "rclpy.subscription", subscription)
    monkeypatch.setitem(sys.modules, "rclpy.event_handler", None)  # makes the import fail
    monkeypatch.setitem(sys.modules, "rclpy.qos_event", qos_event)
    return SimpleNamespace(**runpy.run_path(str(NODES / "ros_versions.py")))


def test_events_have_their_names_and_messages_no_numbers_in_humble(humble):
    assert humble.SubscriptionEventCallbacks.__name__ == "SubscriptionEventCallbacks"
    heard = []
    humble.with_message_info(lambda *given: heard.append(given))("message")
    assert heard == [("message", {})]


def test_parameters_of_a_node_without_the_newer_callback_change_at_run_time(node):
    from rclpy.node import Node
    from rclpy.parameter import Parameter

    from smart_caption_ros.nodes.parameters import Changes, Parameters, ParameterSpec

    class OlderNode(Node):
        @property
        def add_post_set_parameters_callback(self):
            raise AttributeError

    older = OlderNode("older", context=node.context)
    table = [ParameterSpec("rate", 1, "Rate.", Changes.ANY_TIME, minimum=1, maximum=9)]
    seen = []
    parameters = Parameters(older, table, on_change=seen.append)
    (accepted,) = older.set_parameters([Parameter("rate", value=4)])
    (refused,) = older.set_parameters([Parameter("rate", value=12)])
    assert (accepted.successful, refused.successful) == (True, False)
    assert (parameters.values["rate"], seen) == (4, [{"rate"}])
    older.destroy_node()
