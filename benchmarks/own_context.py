"""A ROS node in a context of its own, for the length of a block: benchmarks observe other processes by it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

_T = TypeVar("_T", bound="NodeInOwnContext")


class NodeInOwnContext:
    """A node and its executor, which runs callbacks only while a method of a subclass spins it."""

    node_name: ClassVar[str] = "benchmark"

    def __init__(self, context: Context) -> None:
        self.node = Node(self.node_name, context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self.node)

    @classmethod
    @contextmanager
    def opened(cls: type[_T], *arguments: Any) -> Iterator[_T]:
        """Create the object for the length of the block.

        Args:
            arguments: those of the constructor after the context.
        """
        context = Context()
        rclpy.init(context=context)
        opened = cls(context, *arguments)
        try:
            yield opened
        finally:
            opened._executor.shutdown()
            opened.node.destroy_node()
            context.try_shutdown()
