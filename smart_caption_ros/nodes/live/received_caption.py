"""Convert messages to what a consumer of a feed sees."""

from __future__ import annotations

import math

from diagnostic_msgs.msg import DiagnosticStatus

from smart_caption_ros.caption_messages import CAPTION_STATUSES, caption_of, grounding_of, stamp_ns
from smart_caption_ros.live import CaptionStatus, Health, LiveCaption
from smart_caption_ros.msg import Caption, Coverage

_WITHOUT_NOUNS = (Coverage.REASON_NOT_CAPTIONED, Coverage.REASON_DISABLED, Coverage.REASON_FAILED)
_WITHOUT_OBJECTS = (*_WITHOUT_NOUNS, Coverage.REASON_NO_DETECTIONS, Coverage.REASON_DETECTIONS_LATE)

HEALTH = {
    DiagnosticStatus.OK: Health.OK,
    DiagnosticStatus.WARN: Health.WARNING,
    DiagnosticStatus.ERROR: Health.ERROR,
    DiagnosticStatus.STALE: Health.ERROR,
}


def live_caption(message: Caption, camera: str, topic: str) -> LiveCaption:
    """Convert a message that has just been received.

    Args:
        message: the message.
        camera: name of the camera in the feed, see :func:`camera_name`.
        topic: full name of the topic of the message.
    """
    timing, reason, stamp = message.timing, message.coverage.reason, stamp_ns(message.header)
    age_ms = timing.age_at_start_ms + timing.total_ms + timing.detection_wait_ms + timing.coverage_ms
    return LiveCaption(
        camera=camera,
        source=topic,
        caption=caption_of(message),
        status=CAPTION_STATUSES.get(message.status, CaptionStatus.ERROR),
        status_message=message.status_message,
        stamp_ns=stamp or None,
        frame_id=message.header.frame_id,
        grounding=None if reason in _WITHOUT_NOUNS else grounding_of(message),
        looked_for_objects=reason not in _WITHOUT_OBJECTS,
        coverage_reason=message.coverage.reason_message,
        # Not above 0: the image has no stamp or one of the future, or the node's clock does not run.
        age_s=age_ms / 1e3 if timing.age_at_start_ms > 0 and math.isfinite(age_ms) else None,
        dropped=int(timing.dropped_frames),
    )


def camera_name(topic: str, camera: str) -> str:
    """Return a name for a camera that differs from those of other robots' cameras.

    It is that of the messages, behind the namespace of the topic unless this is that of the default launch: "front" on
    /robot/caption and on /front/caption, "left/front" on /left/caption and on /left/front/caption, and "left" where a
    camera without a name is on /left/caption.

    Args:
        topic: full name of the topic of the captions.
        camera: :attr:`Caption.camera` of its messages.
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
