"""The demo's listener: a node that pairs captions with their images, prints and reports them.

Like a program of a user, it receives the captions from the topics alone.
"""

from dataclasses import replace
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rich.console import Console
from rich.markup import escape
from sensor_msgs.msg import Image

from smart_caption_ros.caption_messages import from_message, stamp_ns
from smart_caption_ros.imaging.image_messages import decode_image
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.demo.plan import CAPTION_TOPIC, IMAGE_TOPIC, DemoPlan
from smart_caption_ros.nodes.demo.report import DemoReport
from smart_caption_ros.record import CaptionRecord, CaptionStatus
from smart_caption_ros.signals import EndSignals
from smart_caption_ros.text import visible
from smart_caption_ros.viewing import draw_overlay

_QOS = QoSProfile(depth=200, reliability=ReliabilityPolicy.RELIABLE)


class DemoListener:
    """Subscribes to captions and images and pairs them by stamp."""

    def __init__(self, console: Console, plan: DemoPlan, report: DemoReport, signals: EndSignals) -> None:
        self._console = console
        self._plan = plan
        self._report = report
        self._signals = signals
        self._context = Context()
        # The demo handles Ctrl-C itself to end its processes.
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = Node("demo_listener", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        on_caption: Any = self._on_caption  # rclpy annotates callbacks without the second argument
        self._captions = self._node.create_subscription(Caption, CAPTION_TOPIC, on_caption, _QOS)
        self._indices: dict[int, int] = {}  # stamp -> index of the frame
        self._images: dict[int, Image] = {}  # stamp -> image whose caption has not arrived
        self._early: dict[int, tuple[Caption, float]] = {}  # stamp -> caption whose image has not arrived, latency
        self.answered: dict[int, CaptionRecord] = {}

    def __enter__(self) -> "DemoListener":
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()

    def has_caption_publisher(self) -> bool:
        return self._captions.get_publisher_count() > 0

    def subscribe_to_images(self) -> None:
        self._node.create_subscription(Image, IMAGE_TOPIC, self._on_image, _QOS)

    def spin_once(self) -> None:
        """Handle one message, or wait a tenth of a second for it; raises KeyboardInterrupt after a signal."""
        self._signals.raise_if_arrived()
        self._executor.spin_once(timeout_sec=0.1)

    def has_all_images(self) -> bool:
        """Return whether as many frames as planned were published."""
        return len(self._indices) == self._plan.options.max_frames

    def is_complete(self) -> bool:
        """Return whether the last frame was answered; answers arrive in the order of the frames."""
        return self._expected == 0 or self._expected - 1 in self.answered

    @property
    def _expected(self) -> int:
        return max(len(self._plan.frames), len(self._indices))

    def problems(self) -> list[str]:
        """Return one sentence for each frame without a caption."""
        sentences = []
        for index in range(self._expected):
            name, record = self._plan.name(index), self.answered.get(index)
            if record is None:
                published = index in self._indices.values()
                sentences.append(f"{name} was {'not answered' if published else 'never published'}")
            elif record.status not in (CaptionStatus.OK, CaptionStatus.LOW_CONFIDENCE):
                sentences.append(f"{name}: {record.status.value}: {record.status_message}")
        return sentences

    def _on_image(self, image: Image) -> None:
        if self.has_all_images():  # a live camera publishes until it is stopped
            return
        stamp = stamp_ns(image.header)
        self._indices[stamp] = len(self._indices)
        self._images[stamp] = image
        if (early := self._early.pop(stamp, None)) is not None:
            self._report_answer(stamp, *early)

    def _on_caption(self, message: Caption, info: dict[str, Any]) -> None:
        stamp = stamp_ns(message.header)
        latency_ms = (info["received_timestamp"] - stamp) / 1e6
        if stamp in self._images:
            self._report_answer(stamp, message, latency_ms)
        else:
            self._early[stamp] = (message, latency_ms)

    def _report_answer(self, stamp: int, message: Caption, latency_ms: float) -> None:
        index = self._indices[stamp]
        name = self._plan.name(index)
        image_bgr = decode_image(self._images.pop(stamp))
        record = replace(from_message(message, source=CAPTION_TOPIC), name=self._plan.address(index))
        self.answered[index] = record
        self._print(name, record, latency_ms)
        values = {
            **record.to_json(),
            "latency_ms": round(latency_ms, 3),
            "objects_from": "ground truth" if self._plan.knows_objects else "detector",
        }
        self._report.add(index, name, values, draw_overlay(image_bgr, record.caption, name, record.grounding))

    def _print(self, name: str, record: CaptionRecord, latency_ms: float) -> None:
        caption, grounding = record.caption, record.grounding
        if caption.text:
            outcome = f"[bold]{escape(visible(caption.text, 1000))}[/bold]"
        else:
            outcome = f"[red]{record.status.value}: {escape(visible(record.status_message))}[/red]"
        coverage = grounding.coverage if grounding else None
        self._console.print(
            f"{escape(visible(name)):<16} {outcome}   [dim]score {caption.score:.2f}   "
            f"confidence {caption.confidence:.2f}   {'' if coverage is None else f'coverage {coverage:.2f}   '}"
            f"latency {latency_ms:.0f} ms[/dim]"
        )
