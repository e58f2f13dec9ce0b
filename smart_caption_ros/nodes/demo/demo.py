"""The demo: a camera node and the caption node as two processes over Fast DDS, and a program that listens.

That program, in this module, is like any user's: all that it knows of the captions comes from the topics. Where the
source knows what is in its frames, the camera node publishes that as a detector would; else the objects are those of
the bundle's detector, if it has one.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rich.console import Console
from rich.markup import escape
from sensor_msgs.msg import Image

from smart_caption_ros.files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file
from smart_caption_ros.imaging.image_messages import decode_image
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.demo.processes import NodeProcess, free_domain_id
from smart_caption_ros.nodes.demo.report import CAPTIONS_FILE, OVERLAY_FOLDER, SHEET_FILE, DemoReport
from smart_caption_ros.nodes.detection_input import OWN_TYPE
from smart_caption_ros.nodes.messages import STATUS_NAMES, from_message, grounding_of
from smart_caption_ros.nodes.signals import EndSignals
from smart_caption_ros.sources import SourceError, open_source
from smart_caption_ros.sources.describing import Answer, to_json
from smart_caption_ros.viewing import draw_overlay

DEFAULT_SOURCE = "sample:household"

_SEQUENCE_FRAMES = 16
_GROUND_TRUTH, _DETECTOR = "ground truth", "detector"

_CAPTION_TOPIC = "/robot/caption"
_IMAGE_TOPIC = "/image"
_DETECTIONS_TOPIC = "/detections"
_LISTENER_QOS = QoSProfile(depth=200, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE)


class DemoError(Exception):
    """The demo cannot go on, or did not do what it should. The message is for a person."""


@dataclass(frozen=True)
class _Plan:
    """The frames to come. Their names are known beforehand, except for a live camera's."""

    description: str
    names: tuple[str, ...] | None
    addresses: tuple[str, ...]
    limit: int
    every: int
    knows_objects: bool
    """Whether the source knows what is in its frames."""

    def name(self, index: int) -> str:
        return self.names[index] if self.names and index < len(self.names) else f"frame {index}"

    def address(self, index: int) -> str:
        return self.addresses[index] if index < len(self.addresses) else self.name(index)


def run_demo(
    source: str | None,
    output: Path,
    rate_hz: float = 1.0,
    timeout_s: float = 120.0,
    max_frames: int = 60,
    every: int | None = None,
) -> int:
    """Captions a source over ROS 2, prints the captions as they arrive and leaves them in a folder.

    Args:
        source: what to publish, see `smart_caption_ros.sources`; None takes the household sequences in the package.
        output: folder for captions.jsonl, overlays/ and contact_sheet.png; made if need be.
        rate_hz: frames a second.
        timeout_s: time after which the demo gives up.
        max_frames: frames after which a longer source ends.
        every: take every Nth frame of the source; None takes all, and of sequences as many as lead through all of them
            in 16 frames or fewer.

    Returns:
        The exit status: 0 when every published frame got a caption, 130 after Ctrl-C, else 1.
    """
    console, errors = Console(soft_wrap=True, highlight=False), Console(stderr=True, soft_wrap=True)
    try:
        with contextlib.ExitStack() as stack:
            signals = stack.enter_context(EndSignals())
            logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="smart_caption_demo_")))
            stack.enter_context(_environment(logs))
            _run(console, source or DEFAULT_SOURCE, output, rate_hz, timeout_s, max_frames, every, logs, signals)
    except (DemoError, SourceError, OSError) as error:
        errors.print(f"[red]demo:[/red] {escape(str(error))}")
        return 1
    except KeyboardInterrupt:
        errors.print("interrupted")
        return 130
    return 0


def _run(
    console: Console,
    source: str,
    output: Path,
    rate_hz: float,
    timeout_s: float,
    max_frames: int,
    every: int | None,
    logs: Path,
    signals: EndSignals,
) -> None:
    end_s = time.monotonic() + timeout_s
    plan = _plan(console, source, max_frames, every, signals)
    needed_s = len(plan.names or ()) / rate_hz
    if needed_s > timeout_s:
        raise DemoError(
            f"{len(plan.names or ())} frames at {rate_hz:g} Hz take {needed_s:.0f} s, and the time limit is "
            f"{timeout_s:g} s: allow more time, or fewer frames"
        )
    with contextlib.ExitStack() as stack:
        report = DemoReport(output)
        stack.callback(report.close)
        caption_node, camera_node = children = [
            stack.enter_context(NodeProcess(f"smart_caption_ros.nodes.{name}", arguments, logs / f"{name}.log"))
            for name, arguments in (
                ("caption_node", _caption_node_arguments(plan)),
                ("camera_node", _camera_node_arguments(source, rate_hz, plan)),
            )
        ]
        listener = stack.enter_context(_Listener(console, plan, report, signals))
        console.print(f"{plan.description}, at {rate_hz:g} Hz over ROS 2 domain {os.environ['ROS_DOMAIN_ID']}")
        console.print(
            f"objects: the sequences' ground truth, published on {_DETECTIONS_TOPIC} with the stamps of the frames"
            if plan.knows_objects
            else "objects: those of the bundle's own detector, if it has one"
        )
        with console.status("the caption node loads its model ..."):
            _spin(listener, listener.hears_captions, children, end_s, "the caption node did not start in time")
        # The camera waits for two subscribers: the caption node and, from now on, this program.
        listener.watch_images()
        _spin(
            listener,
            lambda: camera_node.exit_status is not None,
            children,
            end_s,
            "the camera did not finish",
        )
        _spin(listener, listener.is_complete, [caption_node], end_s, "")
        problems = listener.problems()
        if (status := caption_node.stop()) != 0:
            problems.append(f"the caption node ended with status {status}")
    if problems:
        raise DemoError("\n".join([*problems, "the end of the caption node's log:", caption_node.log_tail()]))
    console.print(
        f"{len(listener.answered)} of {len(listener.answered)} frames captioned; "
        f"see {output / CAPTIONS_FILE}, {output / OVERLAY_FOLDER} and {output / SHEET_FILE}"
    )


def _plan(console: Console, spec: str, max_frames: int, every: int | None, signals: EndSignals) -> _Plan:
    source = open_source(spec)
    length = source.known_length
    if every is None:
        every = math.ceil(length / _SEQUENCE_FRAMES) if source.knows_objects and length else 1
    if length is None:
        return _Plan(source.description, None, (), max_frames, every, source.knows_objects)
    frames = []
    for frame in itertools.islice(source.every(every), max_frames):
        frames.append((frame.name, source.address_of(frame)))
        signals.raise_if_arrived()
    chosen = math.ceil(length / every)
    if every > 1:
        console.print(f"{source.description}: the demo takes {chosen} of {length} frames, one of {every}")
    if chosen > max_frames:
        console.print(f"{source.description}: the demo takes the first {max_frames} of {chosen}")
    names, addresses = zip(*frames, strict=True)
    return _Plan(source.description, names, addresses, max_frames, every, source.knows_objects)


def _caption_node_arguments(plan: _Plan) -> list[str]:
    given = [
        *("-p", "prefer_detections:=true"),
        *("-p", f"detection_type:={OWN_TYPE}"),
        *("-p", "detection_slop:=0.0"),
        *("-p", "detection_wait:=5.0"),
        *("-p", f"qos_overrides.{_DETECTIONS_TOPIC}.subscription.reliability:=reliable"),
    ]
    return [
        "--params-file",
        str(config_file("caption.yaml")),
        # However slow the machine, each of these frames is to be answered: none too old, none lost.
        *("-p", "max_age_s:=0.0"),
        *("-p", f"qos_overrides.{_IMAGE_TOPIC}.subscription.reliability:=reliable"),
        *("-p", f"qos_overrides.{_IMAGE_TOPIC}.subscription.depth:=10"),
        *(given if plan.knows_objects else ()),
    ]


def _camera_node_arguments(source: str, rate_hz: float, plan: _Plan) -> list[str]:
    return [
        "--params-file",
        str(config_file("camera.yaml")),
        *("-p", f"source:={json.dumps(source)}"),  # quoted, or YAML would make a number of "0"
        *("-p", f"rate_hz:={float(rate_hz)}"),
        *("-p", "loop:=false"),
        *("-p", f"max_frames:={plan.limit}"),
        *("-p", f"every:={plan.every}"),
        *("-p", f"publish_objects:={str(plan.knows_objects).lower()}"),
        *("-p", "reliable:=true"),
        *("-p", "wait_for_subscribers:=2"),
        *("-p", "wait_timeout_s:=120.0"),
    ]


class _Listener:
    """Subscribes to captions and images, brings together what has one stamp, prints and reports it."""

    def __init__(self, console: Console, plan: _Plan, report: DemoReport, signals: EndSignals) -> None:
        self._console = console
        self._plan = plan
        self._report = report
        self._signals = signals
        self._context = Context()
        # Ctrl-C is the demo's: it has children to end.
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = Node("demo_listener", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        on_caption: Any = self._on_caption  # rclpy's types know only callbacks without the second argument
        self._captions = self._node.create_subscription(Caption, _CAPTION_TOPIC, on_caption, _LISTENER_QOS)
        self._indices: dict[int, int] = {}
        self._images: dict[int, Image] = {}
        self._early: dict[int, tuple[Caption, float]] = {}
        self.answered: dict[int, Caption] = {}

    def __enter__(self) -> _Listener:
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()

    def hears_captions(self) -> bool:
        """Whether the caption node's publisher is there."""
        return self._captions.get_publisher_count() > 0

    def watch_images(self) -> None:
        """Subscribes to the images as well."""
        self._node.create_subscription(Image, _IMAGE_TOPIC, self._on_image, _LISTENER_QOS)

    def spin_once(self) -> None:
        """Handles what arrives within a tenth of a second; raises KeyboardInterrupt after a signal."""
        self._signals.raise_if_arrived()
        self._executor.spin_once(timeout_sec=0.1)

    def is_complete(self) -> bool:
        """Whether no more answers are to be expected: they come in the order of the frames."""
        return self._expected == 0 or self._expected - 1 in self.answered

    @property
    def _expected(self) -> int:
        """Frames that are known to have been published or to be due."""
        return max(len(self._plan.names or ()), len(self._indices))

    def problems(self) -> list[str]:
        """A sentence for each frame that was not captioned."""
        sentences = []
        for index in range(self._expected):
            name, message = self._plan.name(index), self.answered.get(index)
            if message is None:
                published = index in self._indices.values()
                sentences.append(f"{name} was {'not answered' if published else 'never published'}")
            elif not message.text:
                sentences.append(f"{name}: {STATUS_NAMES[message.status]}: {message.status_message}")
        return sentences

    def _on_image(self, image: Image) -> None:
        stamp_ns = _stamp_ns(image)
        self._indices[stamp_ns] = len(self._indices)
        self._images[stamp_ns] = image
        if (early := self._early.pop(stamp_ns, None)) is not None:
            self._answer(stamp_ns, *early)

    def _on_caption(self, message: Caption, info: dict[str, Any]) -> None:
        stamp_ns = _stamp_ns(message)
        latency_ms = (info["received_timestamp"] - stamp_ns) / 1e6
        if stamp_ns in self._images:
            self._answer(stamp_ns, message, latency_ms)
        else:
            self._early[stamp_ns] = (message, latency_ms)

    def _answer(self, stamp_ns: int, message: Caption, latency_ms: float) -> None:
        index = self._indices[stamp_ns]
        name = self._plan.name(index)
        image_bgr = decode_image(self._images.pop(stamp_ns))
        self.answered[index] = message
        if message.text:
            outcome = f"[bold]{escape(message.text)}[/bold]"
        else:
            outcome = f"[red]{STATUS_NAMES[message.status]}: {escape(message.status_message)}[/red]"
        coverage = f"coverage {message.coverage.coverage:.2f}   " if message.coverage.valid else ""
        self._console.print(
            f"{escape(name):<16} {outcome}   [dim]score {message.score:.2f}   "
            f"confidence {message.confidence:.2f}   {coverage}latency {latency_ms:.0f} ms[/dim]"
        )
        caption, grounding = from_message(message, (image_bgr.shape[1], image_bgr.shape[0])), grounding_of(message)
        record = {
            **to_json(Answer(self._plan.address(index), caption=caption, grounding=grounding)),
            "stamp": f"{stamp_ns // 10**9}.{stamp_ns % 10**9:09d}",
            "status": STATUS_NAMES[message.status],
            "latency_ms": round(latency_ms, 3),
            "objects_from": _GROUND_TRUTH if self._plan.knows_objects else _DETECTOR,
        }
        self._report.add(index, name, record, draw_overlay(image_bgr, caption, name, grounding))


def _stamp_ns(message: Image | Caption) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def _spin(
    listener: _Listener, done: Callable[[], bool], children: list[NodeProcess], end_s: float, failure: str
) -> None:
    """Listens until `done`. A child that dies is an error, and so is lateness where `failure` is given."""
    while not done():
        for child in children:
            if child.exit_status not in (None, 0) or (child.exit_status == 0 and child is children[0]):
                raise DemoError(f"{child.module} ended with status {child.exit_status}:\n{child.log_tail()}")
        if time.monotonic() > end_s:
            if not failure:
                return
            raise DemoError("\n".join([failure, *(f"{c.module}:\n{c.log_tail()}" for c in children)]))
        listener.spin_once()


@contextlib.contextmanager
def _environment(logs: Path) -> Iterator[None]:
    """What ROS reads of the environment, where the user chose nothing.

    A domain of the demo's own that ends at this machine, the profile for images, a folder for logs.
    """
    before = dict(os.environ)
    if "ROS_DOMAIN_ID" not in os.environ:
        os.environ["ROS_DOMAIN_ID"] = str(free_domain_id())
        os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ.setdefault(PROFILE_VARIABLE, str(config_file(FAST_DDS_PROFILE)))
    os.environ.setdefault("ROS_LOG_DIR", str(logs))
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
