"""Shared by the benchmarks of the caption node: its settings, and nodes that observe other processes."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.time import Time
from smart_caption_ros.msg import Caption

from smart_caption_ros.nodes.demo.processes import NodeProcess

START_TIMEOUT_S = 120.0
NODE, CAMERA_NODE = "smart_caption_ros.nodes.caption_command", "smart_caption_ros.nodes.camera_command"
_T = TypeVar("_T", bound="NodeInOwnContext")


class NoCaptionError(Exception):
    """The nodes did not publish captions in time; the message contains the end of their logs."""


@dataclass(frozen=True)
class NodeSettings:
    """Settings of the caption node."""

    bundle: Path | None
    """None for the bundle that ships."""
    engine: str
    threads: int
    module: str = NODE
    """Module that runs as the process of the node."""

    @property
    def parameters(self) -> dict[str, object]:
        """Parameters of the node."""
        return {"engine": self.engine, "threads": self.threads, **({"bundle": self.bundle} if self.bundle else {})}


def parameter_arguments(values: Mapping[str, object]) -> list[str]:
    """Return parameters as arguments of a node process."""
    return [argument for name, value in values.items() for argument in ("-p", f"{name}:={value}")]


class NodeInOwnContext:
    """A node in its own context, whose callbacks run only while a method spins its executor."""

    node_name: ClassVar[str] = "benchmark"

    def __init__(self, context: Context) -> None:
        self.node = Node(self.node_name, context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self.node)

    @classmethod
    @contextmanager
    def opened(cls: type[_T], *arguments: Any) -> Iterator[_T]:
        """Create the object for the block; ``arguments`` are those of the constructor after the context."""
        context = Context()
        rclpy.init(context=context)
        opened = cls(context, *arguments)
        try:
            yield opened
        finally:
            opened._executor.shutdown()
            opened.node.destroy_node()
            context.try_shutdown()

    def spin(self, seconds: float) -> None:
        """Receive messages for a while."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=min(left_s, 0.1))


class CaptionListener(NodeInOwnContext):
    """Receives the captions of some topics, each with its age at arrival in seconds."""

    def __init__(self, context: Context, topics: Sequence[str]) -> None:
        super().__init__(context)
        self.arrived: list[tuple[Caption, float]] = []
        self._silent = set(topics)
        for topic in topics:
            self.node.create_subscription(Caption, topic, partial(self._on_caption, topic), 100)

    def wait_for_all(self, processes: Iterable[NodeProcess]) -> None:
        """Listen until every topic has had a caption.

        Raises:
            NoCaptionError: a topic has none in time; the message contains the logs of the processes.
        """
        end_s = time.monotonic() + START_TIMEOUT_S
        while self._silent:
            if time.monotonic() > end_s:
                logs = "\n".join(process.log_tail() for process in processes)
                raise NoCaptionError(f"no caption on {min(self._silent)} after {START_TIMEOUT_S:g} s\n{logs}")
            self._executor.spin_once(timeout_sec=0.1)

    def _on_caption(self, topic: str, caption: Caption) -> None:
        now = self.node.get_clock().now()
        age = now - Time.from_msg(caption.header.stamp, now.clock_type)
        self.arrived.append((caption, age.nanoseconds / 1e9))
        self._silent.discard(topic)
