"""Rows of a log for the tests."""

from typing import Any

from smart_caption_ros.caption_log import LoggedCaption, LoggedNoun, LoggedObject, LoggedPose

START_NS = 1_790_000_000_000_000_000
JPEG = b"\xff\xd8\xff\xe0 picture \xff\xd9"


def row(text: str = "a red cup on a table", at_s: float = 0.0, **fields: Any) -> LoggedCaption:
    """A caption `at_s` seconds after the first one of a test."""
    stamp_ns = START_NS + round(at_s * 1e9)
    values = {"stamp_ns": stamp_ns, "wall_time_ns": stamp_ns + 10**8, "robot": "robot1", "camera": "front"}
    return LoggedCaption(text=text, **{**values, **fields})


def full_row(at_s: float = 0.0) -> LoggedCaption:
    """A caption with everything that a row has."""
    return row(
        at_s=at_s,
        frame_id="camera_optical_frame",
        score=-4.25,
        status="low confidence",
        model="default",
        objects=(
            LoggedObject("cup", 0.9, (1.0, 2.0, 3.5, 4.0)),
            LoggedObject("dining table", None, (0.0, 0.0, 9.0, 9.0)),
        ),
        nouns=(LoggedNoun("cup", True, 2, 1, 0), LoggedNoun("table", False, 5), LoggedNoun("person", None)),
        coverage=0.5,
        confidence=0.75,
        calibrated_confidence=0.625,
        image_size=(640, 480),
        pose=at(1.5, -2.0),
        picture=JPEG,
    )


def at(x: float, y: float, z: float = 0.0, frame_id: str = "map") -> LoggedPose:
    """A pose without a turn."""
    return LoggedPose(frame_id, (x, y, z), (0.0, 0.0, 0.0, 1.0))
