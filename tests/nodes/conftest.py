"""What the tests of single parts of the nodes share: a node in a ROS domain of its own, and waiting."""

import pytest


@pytest.fixture
def node(monkeypatch):
    """A node in a ROS domain of its own, without an executor."""
    import rclpy
    from rclpy.context import Context
    from rclpy.lifecycle import LifecycleNode

    from smart_caption_ros.nodes.demo.processes import free_domain_id

    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    context = Context()
    rclpy.init(context=context, domain_id=free_domain_id())
    made = LifecycleNode("part", context=context)
    yield made
    made.destroy_node()
    context.try_shutdown()


@pytest.fixture
def stranger(node):
    """Another node, as of another process: one process has one type for each topic."""
    import rclpy
    from rclpy.context import Context
    from rclpy.node import Node

    context = Context()
    rclpy.init(context=context, domain_id=node.context.get_domain_id())
    made = Node("stranger", context=context)
    yield made
    made.destroy_node()
    context.try_shutdown()
