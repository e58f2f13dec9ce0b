"""Where the robot was when an image was taken, from tf2 where tf2_ros is installed."""

from collections.abc import Callable
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time
from std_msgs.msg import Header

from smart_caption_ros.record import Pose

TOLERANCE_S = 1.0
"""A pose this long before or after the image is good enough where tf2 has none of its time."""

_CACHE_S = 30.0


class RobotPoseLookup:
    """Looks up where the robot was at the stamp of an image; None where that is unknown."""

    def __init__(self, node: Node, map_frame: str, robot_frame: str, on_problem: Callable[[str], None]) -> None:
        """
        Args:
            robot_frame: the frame whose pose is looked up; empty takes that of the image.
            on_problem: called with a sentence where tf2_ros is not installed.
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
        # It fills the buffer as long as it exists.
        self._listener = tf2_ros.TransformListener(self._buffer, node, spin_thread=False)

    def __call__(self, header: Header) -> Pose | None:
        frame = self._robot_frame or header.frame_id
        if not frame or self._buffer is None:
            return None
        stamp = Time.from_msg(header.stamp)
        found = self._find(frame, stamp)
        if found is None and stamp.nanoseconds:
            found = self._find(frame, Time())  # the newest: that of the image may not have come yet
            if found is None or abs((Time.from_msg(found.header.stamp) - stamp).nanoseconds) > TOLERANCE_S * 1e9:
                return None
        if found is None:
            return None
        at, turned = found.transform.translation, found.transform.rotation
        return Pose(self._map_frame, (at.x, at.y, at.z), (turned.x, turned.y, turned.z, turned.w))

    def _find(self, frame: str, stamp: Time) -> Any:
        try:
            return self._buffer.lookup_transform(self._map_frame, frame, stamp)
        except self._error:
            return None
