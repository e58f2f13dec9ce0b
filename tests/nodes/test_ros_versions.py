"""ROS 2 Humble, by stand-ins that lack what its rclpy lacks: it cannot be installed beside the other versions."""

import re
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


def test_no_other_module_of_the_nodes_names_what_humble_lacks():
    lacking = re.compile(r"rclpy\.event_handler|add_post_set_parameters_callback")
    others = [path for path in NODES.rglob("*.py") if path.name != "ros_versions.py"]
    assert others
    assert not [path.name for path in others if lacking.search(path.read_text())]


def test_parameters_of_a_node_without_the_newer_callback_change_at_run_time():
    import rclpy
    from rclpy.context import Context
    from rclpy.node import Node
    from rclpy.parameter import Parameter

    from smart_caption_ros.nodes.parameters import Changes, Parameters, ParameterSpec

    class OlderNode(Node):
        @property
        def add_post_set_parameters_callback(self):
            raise AttributeError

    context = Context()
    rclpy.init(args=[], context=context)
    try:
        node = OlderNode("older", context=context)
        table = [ParameterSpec("rate", 1, "Rate.", Changes.ANY_TIME, minimum=1, maximum=9)]
        seen = []
        parameters = Parameters(node, table, on_change=seen.append)
        (accepted,) = node.set_parameters([Parameter("rate", value=4)])
        (refused,) = node.set_parameters([Parameter("rate", value=12)])
        assert (accepted.successful, refused.successful) == (True, False)
        assert (parameters.values["rate"], seen) == (4, [{"rate"}])
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
