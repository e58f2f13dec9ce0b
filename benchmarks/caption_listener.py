"""What the benchmarks of the caption node share: a node that receives captions, and arguments of node processes."""

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from rclpy.context import Context
from rclpy.time import Time
from smart_caption_ros.msg import Caption

from benchmarks.own_context import NodeInOwnContext
from smart_caption_ros.nodes.demo.processes import NodeProcess

START_TIMEOUT_S = 120.0
NODE, CAMERA_NODE = "smart_caption_ros.nodes.caption_command", "smart_caption_ros.nodes.camera_command"


class NoCaptionError(Exception):
    """The nodes did not publish captions in time; the message has the end of their logs."""


def parameter_arguments(values: Mapping[str, object]) -> list[str]:
    """Return parameters as arguments of a node process."""
    return [argument for name, value in values.items() for argument in ("-p", f"{name}:={value}")]


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
            NoCaptionError: one has none in time; the message has the logs of the processes.
        """
        end_s = time.monotonic() + START_TIMEOUT_S
        while self._silent:
            if time.monotonic() > end_s:
                logs = "\n".join(process.log_tail() for process in processes)
                raise NoCaptionError(f"no caption on {min(self._silent)} after {START_TIMEOUT_S:g} s\n{logs}")
            self._executor.spin_once(timeout_sec=0.1)

    def spin(self, seconds: float) -> None:
        """Listen for a while."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=min(left_s, 0.1))

    def _on_caption(self, topic: str, caption: Caption) -> None:
        now = self.node.get_clock().now()
        age = now - Time.from_msg(caption.header.stamp, now.clock_type)
        self.arrived.append((caption, age.nanoseconds / 1e9))
        self._silent.discard(topic)
