"""The captions that a command follows: of ROS topics, or of sources that it captions itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.options import EngineOption, Option
from smart_caption_ros.cli.terminal import needs_ros, report_error, status

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


@dataclass(frozen=True)
class FeedOptions:
    """The options of a command that follows topics of ROS or a source, until Ctrl-C."""

    source: Annotated[
        list[str] | None,
        Option(
            help="Caption this here instead of listening to ROS: an image, folder, sequences, video, bag or index of a "
            "camera; several times for several cameras."
        ),
    ] = None
    topic: Annotated[
        list[str] | None,
        Option(help="Topic of captions in ROS, several times for several; all by default. With --source, the bag's."),
    ] = None
    bundle: Annotated[Path | None, Option(help="Folder of the bundle for --source; the default bundle if omitted.")] = (
        None
    )
    engine: EngineOption = "auto"
    detector: Annotated[
        Path | None, Option(help="ONNX detector for --source instead of the bundle's own, or none.")
    ] = None
    interval: Annotated[float, Option(min=0, help="Seconds between two photographs of --source.")] = 1.0

    def settings(self, loop: bool = False) -> SourceSettings:
        """Return how sources are captioned."""
        return SourceSettings(self.bundle, self.engine, self.detector, self.interval, loop)


def source_feed(
    sources: Sequence[str], topics: Sequence[str], settings: SourceSettings, cameras: Sequence[str] = ()
) -> CaptionFeed:
    """Load the model and return a feed of sources.

    Args:
        sources: as the user named them.
        topics: at most one, the image topic of a bag.
        settings: how they are captioned.
        cameras: names of those to caption; empty takes all.

    Raises:
        typer.BadParameter: there are several topics, or there is no camera of a name.
        SourceError: a source cannot be opened.
    """
    from smart_caption_ros.captioning import Captioner
    from smart_caption_ros.detection.class_names import COCO_CLASSES
    from smart_caption_ros.grounding import NounCoverage, guide_words
    from smart_caption_ros.live import SourceFeed, open_cameras

    if len(topics) > 1:
        raise typer.BadParameter("With --source, --topic is the one image topic of a bag.", param_hint="--topic")
    opened = open_cameras(sources, topics[0] if topics else None)
    if unknown := [name for name in cameras if name not in opened]:
        raise typer.BadParameter(f"{unknown[0]!r} is not one of {', '.join(opened)}.", param_hint="--camera")
    chosen = {name: source for name, source in opened.items() if not cameras or name in cameras}
    coverage = None
    with status("loading the model"):
        captioner = Captioner.from_bundle(settings.bundle, engine=settings.engine, detector=settings.detector)
        guide_words(captioner)
        if captioner.detector is not None:
            coverage = NounCoverage.load(class_list=(*COCO_CLASSES, *captioner.detector.class_names))
    return SourceFeed(chosen, captioner, coverage, interval_s=settings.interval_s, loop=settings.loop)


def ros_feed(
    topics: Sequence[str],
    node_name: str,
    *,
    cameras: Sequence[str] = (),
    are_images_wanted: Callable[[], bool] = lambda: True,
    map_frame: str = "",
    robot_frame: str = "",
) -> AbstractContextManager[CaptionFeed]:
    """Return a feed of topics of ROS 2, which starts when it is entered; exit with a sentence where ROS 2 is missing.

    Args:
        topics: topics of captions; empty takes all.
        node_name: name of the feed's node.
        cameras: names of the cameras to follow; empty takes all.
        are_images_wanted: as of :func:`smart_caption_ros.nodes.live.standalone_feed`.
        map_frame: frame in which to look up where the robot is; empty looks up nothing.
        robot_frame: frame of the robot; empty takes that of the image.
    """
    with needs_ros("following captions without --source"):
        from smart_caption_ros.nodes.live import standalone_feed
        from smart_caption_ros.nodes.robot_pose import robot_pose_lookup
    return standalone_feed(
        topics,
        cameras,
        are_images_wanted=are_images_wanted,
        node_name=node_name,
        make_pose_lookup=robot_pose_lookup(map_frame, robot_frame, report_error) if map_frame else None,
    )
