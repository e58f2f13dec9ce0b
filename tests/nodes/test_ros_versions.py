"""Support of ROS 2 Humble, tested with stand-ins that lack the parts of rclpy that Humble lacks."""

from rclpy.node import Node
from rclpy.parameter import Parameter

from smart_caption_ros.nodes import ros_versions
from smart_caption_ros.nodes.parameters import Changes, Parameters, ParameterSpec


def test_messages_have_no_numbers_in_humble(monkeypatch):
    monkeypatch.setattr(ros_versions, "Subscription", object)
    heard = []
    ros_versions.with_message_info(lambda *given: heard.append(given))("message")
    assert heard == [("message", {})]


def test_parameters_of_a_node_without_the_newer_callback_change_at_run_time(node):
    class OlderNode(Node):
        @property
        def add_post_set_parameters_callback(self):
            raise AttributeError

    older = OlderNode("older", context=node.context)
    table = [ParameterSpec("rate", 1, "Rate.", Changes.ANY_TIME, limits=(1, 9))]
    seen = []
    parameters = Parameters(older, table, on_change=seen.append)
    (accepted,) = older.set_parameters([Parameter("rate", value=4)])
    (refused,) = older.set_parameters([Parameter("rate", value=12)])
    assert (accepted.successful, refused.successful) == (True, False)
    assert (parameters.values["rate"], seen) == (4, [{"rate"}])
    older.destroy_node()
