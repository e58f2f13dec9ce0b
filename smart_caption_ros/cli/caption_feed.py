"""The captions that `watch`, `serve` and `log record` follow: those of ROS topics, or of sources captioned here."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.options import EngineOption, Option, TrustOptions
from smart_caption_ros.cli.terminal import needs_ros, report_error, status

if TYPE_CHECKING:
    from smart_caption_ros.live import CaptionFeed


@dataclass(frozen=True)
class FeedOptions(TrustOptions):
    """The options of a command that follows topics of ROS or a source, until Ctrl-C."""

    source: Annotated[
        list[str] | None,
        Option(
            help="Source to caption instead of following ROS topics: an image, folder, sequences, video, bag or index "
            "of a camera; several times for several cameras."
        ),
    ] = None
    topic: Annotated[
        list[str] | None,
        Option(
            help="Topic of captions, several times for several topics; all by default. With --source, the image topic "
            "of a bag."
        ),
    ] = None
    bundle: Annotated[Path | None, Option(help="Folder of the bundle for --source; the default bundle if omitted.")] = (
        None
    )
    engine: EngineOption = "auto"
    detector: Annotated[
        Path | None, Option(help="ONNX detector for --source instead of the bundle's own, or none.")
    ] = None
    interval: Annotated[float, Option(min=0, max=3600, help="Seconds between two photographs of --source.")] = 1.0


def open_feed(
    options: FeedOptions,
    node_name: str,
    *,
    cameras: Sequence[str] = (),
    loop: bool = False,
    are_images_wanted: Callable[[], bool] = lambda: True,
    map_frame: str = "",
    robot_frame: str = "",
) -> "AbstractContextManager[CaptionFeed]":
    """Return a feed of a source, whose model is loaded, or of ROS topics; the feed starts when it is entered.

    Args:
        are_images_wanted: as for :func:`smart_caption_ros.nodes.live.standalone_feed`.
        map_frame: frame in which to look up where the robot is in ROS; empty looks up nothing.
        robot_frame: frame of the robot; empty takes that of the image.
    """
    if options.source:
        return _source_feed(options, cameras, loop)
    for name in ("bundle", "engine", "detector", "interval"):
        if getattr(options, name) != getattr(FeedOptions(), name):
            raise typer.BadParameter("It needs --source; a node has its own.", param_hint=f"--{name}")
    if loop:
        raise typer.BadParameter("It needs --source.", param_hint="--loop")
    with needs_ros("following captions without --source"):
        from smart_caption_ros.nodes.live import standalone_feed
        from smart_caption_ros.nodes.robot_pose import RobotPoseLookup
    return standalone_feed(
        options.topic or (),
        cameras,
        are_images_wanted=are_images_wanted,
        node_name=node_name,
        make_pose_lookup=(lambda node: RobotPoseLookup(node, map_frame, robot_frame, report_error))
        if map_frame
        else None,
        trust=options.trust,
    )


def _source_feed(options: FeedOptions, cameras: Sequence[str], loop: bool) -> "CaptionFeed":
    from smart_caption_ros.bags.message_captioner import ModelSettings, load_coverage
    from smart_caption_ros.live import SourceFeed, open_cameras

    topics = options.topic or ()
    if len(topics) > 1:
        raise typer.BadParameter("With --source, --topic is the one image topic of a bag.", param_hint="--topic")
    opened = open_cameras(options.source or (), topics[0] if topics else None)
    if unknown := [name for name in cameras if name not in opened]:
        raise typer.BadParameter(f"{unknown[0]!r} is not one of {', '.join(opened)}.", param_hint="--camera")
    chosen = {name: source for name, source in opened.items() if not cameras or name in cameras}
    with status("loading the model"):
        captioner = ModelSettings(options.bundle, options.engine, options.detector).load_captioner()
        coverage = load_coverage(captioner) if captioner.detector else None
    return SourceFeed(chosen, captioner, coverage, interval_s=options.interval, loop=loop, trust=options.trust)
