"""Convert the requests of the service `find` to queries, and rows of the log to its messages."""

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import Header

from smart_caption_ros.caption_log import CaptionLogError, LogRow, Near, Query
from smart_caption_ros.msg import LoggedCaption
from smart_caption_ros.srv import FindCaptions

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
"""Maximum number of captions in a response, even if the request asks for more."""
_NS_PER_S = 10**9


def to_query(request: FindCaptions.Request) -> Query:
    """Convert a request to a query; raises CaptionLogError if it is invalid."""
    near = None
    if request.radius:
        point = request.near.point
        near = Near(point.x, point.y, radius_m=request.radius, frame_id=request.near.header.frame_id)
    return Query(
        words=request.words,
        since_ns=_nanoseconds(request.since) or None,
        until_ns=_nanoseconds(request.until) or None,
        camera=request.camera,
        robot=request.robot,
        near=near,
        order=request.order or "newest",
        limit=min(request.limit or DEFAULT_LIMIT, MAX_LIMIT),
    )


def to_logged_caption(row: LogRow) -> LoggedCaption:
    """Convert a row to a message; raises CaptionLogError if the row is damaged."""
    try:
        record = row.record()
    except ValueError as error:
        raise CaptionLogError(f"the caption {row.id} is damaged: {error}") from error
    header = Header(stamp=_time(record.stamp_ns or 0), frame_id=record.frame_id)
    message = LoggedCaption(
        header=header,
        time=_time(row.time_ns),
        robot=record.robot,
        camera=record.camera,
        text=record.caption.text,
        nouns=[noun.lemma for noun in record.grounding.nouns] if record.grounding else [],
        objects=list(row.classes),
    )
    if record.pose is not None:
        (x, y, z), (qx, qy, qz, qw) = record.pose.position, record.pose.orientation
        message.has_pose = True
        message.pose = PoseStamped(
            header=Header(stamp=header.stamp, frame_id=record.pose.frame_id),
            pose=Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw)),
        )
    if row.picture is not None:
        message.image = CompressedImage(header=header, format="jpeg", data=row.picture)
    return message


def _nanoseconds(time: Time) -> int:
    return int(time.sec * _NS_PER_S + time.nanosec)


def _time(nanoseconds: int) -> Time:
    seconds, rest = divmod(nanoseconds, _NS_PER_S)
    if seconds >= 2**31:  # builtin_interfaces/Time ends in 2038
        return Time()
    return Time(sec=seconds, nanosec=rest)
