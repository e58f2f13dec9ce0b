"""The captions that a command follows: of ROS topics, or of sources that it captions itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from smart_caption_ros.cli.terminal import FAILED, report_error, status

if TYPE_CHECKING:
    from smart_caption_ros.live import CaptionFeed


@dataclass(frozen=True)
class SourceSettings:
    """How sources are captioned; see :class:`smart_caption_ros.live.SourceFeed`."""

    bundle: Path | None
    engine: str
    detector: Path | None
    interval_s: float
    loop: bool = False


def source_feed(sources: Sequence[str], topics: Sequence[str], settings: SourceSettings) -> CaptionFeed:
    """Load the model and return a feed of sources.

    Args:
        sources: as the user named them.
        topics: at most one, the image topic of a bag.
        settings: how they are captioned.

    Raises:
        typer.BadParameter: there are several topics.
        SourceError: a source cannot be opened.
    """
    from smart_caption_ros.captioning import Captioner
    from smart_caption_ros.detection.class_names import COCO_CLASSES
    from smart_caption_ros.grounding import NounCoverage
    from smart_caption_ros.live import SourceFeed, open_cameras

    if len(topics) > 1:
        raise typer.BadParameter("With --source, --topic is the one image topic of a bag.", param_hint="--topic")
    cameras = open_cameras(sources, topics[0] if topics else None)
    coverage = None
    with status("loading the model"):
        captioner = Captioner.from_bundle(settings.bundle, engine=settings.engine, detector=settings.detector)
        if captioner.detector is not None:
            coverage = NounCoverage.load(class_list=(*COCO_CLASSES, *captioner.detector.class_names))
    return SourceFeed(cameras, captioner, coverage, interval_s=settings.interval_s, loop=settings.loop)


def ros_feed(topics: Sequence[str], node_name: str, *, map_frame: str = "", robot_frame: str = "") -> CaptionFeed:
    """Return a feed of topics of ROS 2 with the images of the cameras; exit with a sentence where ROS 2 is missing.

    Args:
        topics: topics of captions; empty takes all.
        node_name: name of the feed's node.
        map_frame: frame in which to look up where the robot is; empty looks up nothing.
        robot_frame: frame of the robot; empty takes that of the image.
    """
    try:
        from smart_caption_ros.nodes.live import FeedImages, RosCaptionFeed
        from smart_caption_ros.nodes.robot_pose import robot_pose_lookup
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("numpy", "cv2"):
            raise
        report_error(
            f"captions of ROS topics need ROS 2 and this package's messages, and there is no module {error.name}: "
            "source the setup.bash of the workspace, or give --source to caption files or a camera without ROS"
        )
        raise typer.Exit(FAILED) from None
    lookup = robot_pose_lookup(map_frame, robot_frame, report_error) if map_frame else None
    return RosCaptionFeed(topics, images=FeedImages.CAMERA, node_name=node_name, make_pose_lookup=lookup)
