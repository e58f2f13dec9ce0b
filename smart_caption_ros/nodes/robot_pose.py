"""Look up where the robot was when an image was taken, with tf2 where tf2_ros is installed."""

from collections.abc import Callable
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time
from std_msgs.msg import Header

from smart_caption_ros.caption_messages import stamp_ns
from smart_caption_ros.record import Pose

TOLERANCE_S = 1.0
"""Maximum time between the image and the newest pose, which is used where tf2 has no pose at the time of the image,
seconds."""

_CACHE_S = 30.0


class RobotPoseLookup:
    """Looks up the pose of the robot at the stamp of an image; None where it is unknown."""

    def __init__(self, node: Node, map_frame: str, robot_frame: str, on_problem: Callable[[str], None]) -> None:
        """
        Args:
            robot_frame: the frame whose pose is looked up; empty takes the frame of the image.
            on_problem: called with a sentence if tf2_ros is not installed.
        """
        self._map_frame, self._robot_frame = map_frame, robot_frame
        self._buffer: Any = None
        try:
            import tf2_ros
        except ImportError:
            on_problem(
                "tf2_ros is not installed, so captions are logged without the robot's pose: "
                "apt install ros-$ROS_DISTRO-tf2-ros-py"
            )
            return
        self._error = tf2_ros.TransformException
        self._buffer = tf2_ros.Buffer(cache_time=Duration(seconds=_CACHE_S), node=node)
        # The listener fills the buffer for as long as the object exists.
        self._listener = tf2_ros.TransformListener(self._buffer, node, spin_thread=False)

    def __call__(self, header: Header) -> Pose | None:
        frame = self._robot_frame or header.frame_id
        if not frame or self._buffer is None:
            return None
        image_ns = max(stamp_ns(header), 0)  # rclpy has no times before 1970
        found = self._find(frame, image_ns)
        if found is None and image_ns:
            found = self._find(frame, 0)  # the pose at the time of the image may not have arrived yet
            if found is None or abs(stamp_ns(found.header) - image_ns) > TOLERANCE_S * 1e9:
                return None
        if found is None:
            return None
        at, turned = found.transform.translation, found.transform.rotation
        return Pose(self._map_frame, (at.x, at.y, at.z), (turned.x, turned.y, turned.z, turned.w))

    def _find(self, frame: str, time_ns: int) -> Any:
        """Return the transform at a time, for time 0 the newest; None if it is unknown."""
        try:
            return self._buffer.lookup_transform(self._map_frame, frame, Time(nanoseconds=time_ns))
        except self._error:
            return None
