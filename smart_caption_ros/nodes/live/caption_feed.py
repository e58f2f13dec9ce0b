"""A feed of the captions that running nodes publish: finds the topics, subscribes, and reads the diagnostics."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from std_msgs.msg import Header

from smart_caption_ros.caption_messages import from_message
from smart_caption_ros.live import CaptionFeed, EventKind, FeedError, FeedEvent, Health
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.caption.diagnostics import IMAGE_TOPIC
from smart_caption_ros.nodes.live.feed_images import IMAGE_TYPES, ImageHistory
from smart_caption_ros.nodes.timers import create_steady_timer
from smart_caption_ros.record import ACCEPT_ALL, CaptionRecord, Pose, Trust
from smart_caption_ros.text import shortened

CAPTION_TYPE = "smart_caption_ros/msg/Caption"

_DISCOVERY_PERIOD_S = 0.5
_TICK_S = 0.1
_IMAGE_WAIT_S = 0.5
"""Maximum time for which a caption waits for its image, seconds."""
_MAX_PENDING = 32
_MAX_OTHER_CAMERAS = 16
_HEALTH = {
    DiagnosticStatus.OK: Health.OK,
    DiagnosticStatus.WARN: Health.WARNING,
    DiagnosticStatus.ERROR: Health.ERROR,
    DiagnosticStatus.STALE: Health.ERROR,
}

PoseLookup = Callable[[Header], Pose | None]


@dataclass
class _CaptionTopic:
    """A topic of captions."""

    name: str
    """Full name, after remapping."""
    given: str
    """Unremapped name; rclpy applies remappings when it subscribes."""
    subscription: Subscription | None = None
    reliability: ReliabilityPolicy = ReliabilityPolicy.RELIABLE
    nodes: set[tuple[str, str]] = field(default_factory=set)
    """Namespace and name of each node that publishes on it, or published last."""
    cameras: dict[str, str] = field(default_factory=dict)
    """Name in the feed of each camera whose captions were received, by :attr:`Caption.camera`."""
    placeholder: str = ""
    """Name in the feed until the first caption names its camera; empty afterwards."""
    images: dict[str, ImageHistory] = field(default_factory=dict)
    pending: deque[tuple[CaptionRecord, float]] = field(default_factory=deque)
    """Captions that wait for their images, each with the end of the wait (monotonic, seconds)."""
    reported_format: int | None = None


class RosCaptionFeed(CaptionFeed):
    """Captions received by a node of the caller; see :class:`smart_caption_ros.live.CaptionFeed`.

    The executor of the caller runs the callbacks, one at a time. The remappings of the node are applied once to each
    name, including the topics that were found in the graph and in diagnostics.
    """

    def __init__(
        self,
        node: Node,
        topics: Sequence[str] = (),
        cameras: Sequence[str] = (),
        *,
        are_images_wanted: Callable[[], bool] = lambda: False,
        pose_lookup: PoseLookup | None = None,
        trust: Trust = ACCEPT_ALL,
    ) -> None:
        """Start.

        Args:
            topics: names of caption topics; empty takes all that exist and those that appear later.
            cameras: names of cameras in the feed or in the messages; empty takes all.
            are_images_wanted: called twice a second on the executor; while it returns True, captions have the images of
                their cameras, from the topics that the diagnostics of the caption node name.
            pose_lookup: called on the executor with the header of each caption; returns :attr:`CaptionRecord.pose`.
            trust: rule by which captions are refused, in addition to that of the node.

        Raises:
            FeedError: a name is not one of a topic.
        """
        super().__init__(trust=trust)
        self._node = node
        self._wanted_topics = tuple(topics)
        self._wanted_cameras = frozenset(cameras)
        self._are_images_wanted = are_images_wanted
        self._pose_lookup = pose_lookup
        self._topics: dict[str, _CaptionTopic] = {}
        self._other_topics: tuple[str, ...] = ()
        self._other_cameras: set[str] = set()
        self._domain = node.context.get_domain_id()
        try:
            for name in self._wanted_topics:
                self._add_topic(name)
        except ValueError as error:
            raise FeedError(shortened(" ".join(str(error).split()))) from error
        # One group for all callbacks, because they share state.
        self._group = MutuallyExclusiveCallbackGroup()
        self._discovery_due_s = 0.0
        self._image_topics: dict[str, str] = {}
        """Image topic of each camera that the diagnostics have named so far."""
        self._diagnostics_subscription = node.create_subscription(
            DiagnosticArray, "/diagnostics", self._read_diagnostics, 10, callback_group=self._group
        )
        self._timer = create_steady_timer(node, _TICK_S, self._tick, self._group)

    @property
    def description(self) -> str:
        topics = ", ".join(self._topics) or f"all topics of type {CAPTION_TYPE}"
        return f"{topics} in ROS 2 domain {self._domain}"

    @property
    def waiting_for(self) -> tuple[str, ...]:
        if self.has_captions:
            return ()
        topics = list(self._topics.values())
        if topics and any(topic.subscription for topic in topics):
            names = ", ".join(topic.name for topic in topics if topic.subscription)
            waits = [f"a caption on {names}: the node is running, and has published none since"]
            checks = "is it active, and do images arrive? `ros2 topic echo /diagnostics` says what it waits for"
        else:
            names = ", ".join(topic.name for topic in topics) or f"a topic of type {CAPTION_TYPE}"
            waits = [f"a publisher of {names} in ROS domain {self._domain}"]
            others = f"captions are on {', '.join(self._other_topics)}; " if self._other_topics else ""
            checks = others + (
                "does the caption node run (`ros2 node list`), with the same ROS_DOMAIN_ID, "
                "and does ROS_AUTOMATIC_DISCOVERY_RANGE let this machine see it?"
            )
        if self._wanted_cameras:
            waits.append(f"of the camera {', '.join(sorted(self._wanted_cameras))}")
        if self._other_cameras:
            checks = f"captions are of {', '.join(sorted(self._other_cameras))}"
        return (" ".join(waits), checks)

    def _tick(self) -> None:
        if self._is_closed:  # a node that is destroyed first destroys the subscriptions itself
            self._unsubscribe()
            return
        if time.monotonic() >= self._discovery_due_s:
            self._discovery_due_s = time.monotonic() + _DISCOVERY_PERIOD_S
            try:
                self._discover()
            except FeedError as error:
                self.close(failure=error)
        for topic in self._topics.values():
            self._release(topic)

    def _unsubscribe(self) -> None:
        for topic in self._topics.values():
            for history in topic.images.values():
                history.destroy()
            if topic.subscription is not None:
                self._node.destroy_subscription(topic.subscription)
        self._node.destroy_subscription(self._diagnostics_subscription)
        self._node.destroy_timer(self._timer)

    def _add_topic(self, name: str) -> None:
        full_name = self._node.resolve_topic_name(name)
        self._topics.setdefault(full_name, _CaptionTopic(full_name, name))

    def _discover(self) -> None:
        """Subscribe to topics that have a publisher now, and note those that no longer have one."""
        types = dict(self._node.get_topic_names_and_types())
        found = [name for name, kinds in types.items() if CAPTION_TYPE in kinds]
        if self._wanted_topics:
            self._refuse_other_types(types)
            self._other_topics = tuple(name for name in found if name not in self._topics)
        else:
            for name in found:
                self._add_topic(name)
        for topic in self._topics.values():
            self._follow(topic)
            if self._are_images_wanted():
                self._follow_images(topic, types)
            else:
                for history in topic.images.values():
                    history.destroy()
                topic.images.clear()

    def _refuse_other_types(self, types: dict[str, list[str]]) -> None:
        others = {name: types[name] for name in self._topics if types.get(name) and CAPTION_TYPE not in types[name]}
        if len(others) == len(self._topics):
            raise FeedError(
                "; ".join(
                    f"the topic {name} has the type {', '.join(kinds)} instead of {CAPTION_TYPE}"
                    for name, kinds in others.items()
                )
            )

    def _follow(self, topic: _CaptionTopic) -> None:
        publishers = [
            publisher
            for publisher in self._node.get_publishers_info_by_topic(topic.given)
            if publisher.topic_type == CAPTION_TYPE
        ]
        if not publishers:
            for camera in (*topic.cameras.values(), topic.placeholder):
                self.remove_camera(camera, f"{topic.name} no longer has a publisher")
            return
        topic.nodes = {(node.node_namespace, node.node_name) for node in publishers}
        for camera in topic.cameras.values():
            self.add_camera(camera, topic.name, f"{topic.name} has a publisher again")
        if not topic.cameras:
            self._add_placeholder(topic)
        # Best effort matches every publisher. Reliable loses nothing, but matches only reliable publishers.
        reliable = all(node.qos_profile.reliability == ReliabilityPolicy.RELIABLE for node in publishers)
        reliability = ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
        if topic.subscription is not None and topic.reliability == reliability:
            return
        if topic.subscription is not None:
            self._node.destroy_subscription(topic.subscription)
        topic.reliability = reliability
        topic.subscription = self._node.create_subscription(
            Caption,
            topic.given,
            lambda message: self._receive(topic, message),
            QoSProfile(depth=100, reliability=reliability),
            callback_group=self._group,
        )

    def _add_placeholder(self, topic: _CaptionTopic) -> None:
        """Add a camera without captions so far, under the name that its captions will most likely have."""
        name = camera_name(topic.name, "")
        if not self._wanted_cameras or name in self._wanted_cameras:
            topic.placeholder = name
            self.add_camera(name, topic.name, f"{topic.name} has a publisher")

    def _follow_images(self, topic: _CaptionTopic, types: dict[str, list[str]]) -> None:
        """Subscribe to the images of the cameras of a topic, as far as their topics are known."""
        for camera in topic.cameras.values():
            name = self._image_topics.get(camera)
            if name is None:
                continue
            history = topic.images.get(camera)
            if history is not None and history.topic == name:
                continue
            kinds = types.get(self._node.resolve_topic_name(name), ())
            kind = next((kind for kind in kinds if kind in IMAGE_TYPES), None)
            if kind is None:
                continue
            if history is not None:
                history.destroy()
            topic.images[camera] = ImageHistory(self._node, name, kind, lambda: self._release(topic), self._group)

    def _receive(self, topic: _CaptionTopic, message: Caption) -> None:
        camera = camera_name(topic.name, message.camera)
        if self._wanted_cameras and not self._wanted_cameras & {camera, message.camera}:
            if len(self._other_cameras) < _MAX_OTHER_CAMERAS:
                self._other_cameras.add(camera)
            return
        if message.format_version != Caption.FORMAT_VERSION and message.format_version != topic.reported_format:
            topic.reported_format = message.format_version
            text = (
                f"{topic.name} has captions of format {message.format_version}, and this program reads "
                f"{Caption.FORMAT_VERSION}: install the same version of the package on both sides"
            )
            self.add_event(FeedEvent(EventKind.ERROR, text, camera))
        if message.camera not in topic.cameras:
            topic.cameras[message.camera] = camera
            if topic.placeholder not in ("", camera):
                self.forget_camera(topic.placeholder)
                self._image_topics.pop(topic.placeholder, None)
            topic.placeholder = ""
            self.add_camera(camera, topic.name, f"captions on {topic.name}")
            self._forget_cameras()
        record = from_message(message, camera=camera, source=topic.name)
        if self._pose_lookup is not None:
            record = replace(record, pose=self._pose_lookup(message.header))
        topic.pending.append((record, time.monotonic() + _IMAGE_WAIT_S))
        self._release(topic)

    def _forget_cameras(self) -> None:
        """Forget the cameras that the feed has dropped for a new one."""
        known = self.camera_names
        for topic in self._topics.values():
            for key, camera in list(topic.cameras.items()):
                if camera not in known:
                    del topic.cameras[key]
                    self._image_topics.pop(camera, None)
                    if (history := topic.images.pop(camera, None)) is not None:
                        history.destroy()

    def _read_diagnostics(self, message: DiagnosticArray) -> None:
        worst: dict[str, tuple[int, str]] = {}
        for status in message.status:
            level = status.level[0]  # a byte
            for camera in self._cameras_of(status):
                if camera not in worst or level > worst[camera][0]:
                    worst[camera] = (level, status.message)
                values = {pair.key: pair.value for pair in status.values}
                if topic := values.get(IMAGE_TOPIC):
                    self._image_topics[camera] = topic
        for name, (level, text) in worst.items():
            self.set_health(name, _HEALTH.get(bytes([level]), Health.UNKNOWN), text)

    def _cameras_of(self, status: DiagnosticStatus) -> Iterator[str]:
        """Yield the names of the cameras that a status of a caption node is about.

        The status contains the name of its node, which lacks the namespace unless diagnostic_updater's `use_fqn` is
        set. If nodes of that name run in several namespaces, the status is assigned to none of their cameras.
        """
        full_name, found, rest = status.name.partition(": captions")
        if not found:
            return
        namespace, _, name = full_name.rpartition("/")
        same = {node for topic in self._topics.values() for node in topic.nodes if node[1] == name}
        if "/" in full_name:
            same = {node for node in same if node[0].strip("/") == namespace.strip("/")}
        elif len(same) > 1:
            return
        # With several cameras, the status of the node itself has no hardware id and is about all of them.
        is_about_node = not rest and not status.hardware_id
        for topic in self._topics.values():
            placeholder = {topic.placeholder.rpartition("/")[2]: topic.placeholder} if topic.placeholder else {}
            for hardware_id, camera in (topic.cameras or placeholder).items():
                if topic.nodes & same and (is_about_node or status.hardware_id == hardware_id):
                    yield camera

    def _release(self, topic: _CaptionTopic) -> None:
        """Pass on captions, in order, whose images have arrived or are overdue."""
        while topic.pending:
            record, due_s = topic.pending[0]
            history = topic.images.get(record.camera)
            image = None
            if history is not None and record.stamp_ns is not None:
                image = history.take(record.stamp_ns)
                if image is None and time.monotonic() < due_s and len(topic.pending) < _MAX_PENDING:
                    return
            topic.pending.popleft()
            self.add(replace(record, image=image))


def camera_name(topic: str, camera: str) -> str:
    """Return a name for a camera that is unique among the cameras of several robots.

    It is the name in the messages after the namespace of the topic, without the namespace of the default launch:
    "front" on /robot/caption and on /front/caption, "left/front" on /left/caption and on /left/front/caption, and
    "left" for a camera without a name on /left/caption.

    Args:
        camera: :attr:`Caption.camera` of the messages.
    """
    parts = [part for part in topic.split("/") if part]
    if parts and parts[-1] == "caption":
        parts.pop()
    if not camera:
        return "/".join(parts) or topic.strip("/") or topic
    if parts and parts[-1] == "robot":
        parts.pop()
    if parts and parts[-1] == camera:
        parts.pop()
    return "/".join([*parts, camera])
