"""What the diagnostics of caption nodes say about the cameras of a feed."""

from collections.abc import Iterator

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from smart_caption_ros.live import CaptionFeed, Health
from smart_caption_ros.nodes.caption.diagnostics import IMAGE_TOPIC

_TASK = ": captions"
_HEALTH = {
    DiagnosticStatus.OK: Health.OK,
    DiagnosticStatus.WARN: Health.WARNING,
    DiagnosticStatus.ERROR: Health.ERROR,
    DiagnosticStatus.STALE: Health.ERROR,
}


class DiagnosticsReader:
    """Finds the statuses of the feed's cameras in /diagnostics; not thread-safe.

    A status has the name of its node, without its namespace unless diagnostic_updater's `use_fqn` is set. Where nodes
    with the same name run in several namespaces, such a status belongs to none of their cameras.
    """

    def __init__(self, feed: CaptionFeed) -> None:
        self._feed = feed
        self._nodes: dict[str, set[tuple[str, str]]] = {}
        self._cameras: dict[str, tuple[str, str]] = {}
        self._image_topics: dict[str, str] = {}

    def set_nodes(self, topic: str, nodes: set[tuple[str, str]]) -> None:
        """Note which nodes, namespace and name each, publish on a topic."""
        self._nodes[topic] = nodes

    def set_camera(self, topic: str, hardware_id: str, camera: str) -> None:
        """Note a camera of the feed, and :attr:`Caption.camera` of its messages, the hardware id of its status."""
        self._cameras[camera] = topic, hardware_id

    def forget_camera(self, camera: str) -> None:
        """Undo :meth:`set_camera`."""
        self._cameras.pop(camera, None)
        self._image_topics.pop(camera, None)

    def image_topic(self, camera: str) -> str | None:
        """Return the full name of the image topic of a camera; None while it is unknown."""
        return self._image_topics.get(camera)

    def read(self, message: DiagnosticArray) -> None:
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
            self._feed.set_health(name, _HEALTH.get(bytes([level]), Health.UNKNOWN), text)

    def _cameras_of(self, status: DiagnosticStatus) -> Iterator[str]:
        """Yield the names, in the feed, of the cameras that a status is about."""
        full_name, found, rest = status.name.partition(_TASK)
        if not found:
            return
        namespace, _, name = full_name.rpartition("/")
        same = {node for nodes in self._nodes.values() for node in nodes if node[1] == name}
        if "/" not in full_name and len(same) > 1:
            return
        for name_in_feed, (topic, hardware_id) in self._cameras.items():
            published_by = self._nodes.get(topic, set()) & same
            if "/" in full_name:
                published_by = {node for node in published_by if node[0].strip("/") == namespace.strip("/")}
            # With several cameras, the status of the node itself has no hardware id: it is about all of them.
            about_node = not rest and not status.hardware_id
            if published_by and (about_node or status.hardware_id == hardware_id):
                yield name_in_feed
