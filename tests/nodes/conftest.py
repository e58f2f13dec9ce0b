"""Fixtures for tests of single parts of the nodes: nodes in separate ROS domains."""

import pytest


@pytest.fixture
def node_with(monkeypatch):
    """Makes nodes without an executor, each in a ROS domain of its own, with the given ROS arguments."""
    import rclpy
    from rclpy.context import Context
    from rclpy.lifecycle import LifecycleNode

    from smart_caption_ros.nodes.demo.processes import free_domain_id

    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    made = []

    def make(*arguments):
        context = Context()
        rclpy.init(context=context, domain_id=free_domain_id())
        made.append(LifecycleNode("part", context=context, cli_args=["--ros-args", *arguments]))
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()
        node.context.try_shutdown()


@pytest.fixture
def node(node_with):
    return node_with()


@pytest.fixture
def stranger(node):
    """A node with its own context, like one of another process, because a process has one type per topic."""
    import rclpy
    from rclpy.context import Context
    from rclpy.node import Node

    context = Context()
    rclpy.init(context=context, domain_id=node.context.get_domain_id())
    made = Node("stranger", context=context)
    yield made
    made.destroy_node()
    context.try_shutdown()
