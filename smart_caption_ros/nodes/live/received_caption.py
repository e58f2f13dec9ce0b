"""Names of cameras and levels of diagnostics, as a consumer of a feed sees them."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticStatus

from smart_caption_ros.live import Health

HEALTH = {
    DiagnosticStatus.OK: Health.OK,
    DiagnosticStatus.WARN: Health.WARNING,
    DiagnosticStatus.ERROR: Health.ERROR,
    DiagnosticStatus.STALE: Health.ERROR,
}


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
