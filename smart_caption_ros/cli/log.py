"""`smart-caption log`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.caption_feed import FeedOptions, open_feed
from smart_caption_ros.cli.options import Argument, JsonOption, LogOption, Option
from smart_caption_ros.cli.terminal import (
    FAILED,
    check_output_file,
    log_to_terminal,
    print_json,
    print_line,
    printable,
    report_error,
)
from smart_caption_ros.text import counted

if TYPE_CHECKING:
    from smart_caption_ros.caption_log import LogRow
    from smart_caption_ros.caption_log.recording import Recorder
    from smart_caption_ros.caption_log.search import Overview
    from smart_caption_ros.live import FeedEvent


@dataclass(frozen=True)
class RecordOptions(FeedOptions):
    log: LogOption = None
    robot: Annotated[str, Option(help="Name of the robot in the log; that of this computer if omitted.")] = ""
    map_frame: Annotated[str, Option(help="Frame of tf in which to note where the robot is; empty notes no place.")] = (
        "map"
    )
    robot_frame: Annotated[str, Option(help="Frame of tf of the robot; empty takes that of the image.")] = "base_link"
    max_size: Annotated[
        float,
        Option(min=0, max=1e9, help="Maximum size of the log in MB; the oldest captions are deleted. 0: no limit."),
    ] = 1000.0
    max_age: Annotated[
        float, Option(min=0, max=1e6, help="Maximum age of a caption in days; older ones are deleted. 0: no limit.")
    ] = 0.0
    picture_size: Annotated[int, Option(min=0, max=4096, help="Longest side of the pictures in pixels; 0: none.")] = 320


def record(*, options: RecordOptions) -> None:
    """Write captions of ROS topics or of --source into the log when their meaning changes, until Ctrl-C."""
    from smart_caption_ros.caption_log import Bounds, CaptionLog
    from smart_caption_ros.caption_log.recording import Recorder
    from smart_caption_ros.caption_log.recording import record as record_feed
    from smart_caption_ros.signals import EndSignals

    log_to_terminal()
    bounds = Bounds(max_bytes=round(options.max_size * 1e6), max_age_s=options.max_age * 86_400)
    # Before the log is created, because a source may be missing.
    opened = open_feed(options, "caption_log", map_frame=options.map_frame, robot_frame=options.robot_frame)
    with CaptionLog(_path(options.log), bounds) as log, EndSignals() as signals:
        recorder = Recorder(log, robot=options.robot, picture_side_px=options.picture_size, on_problem=report_error)
        with opened as feed:
            print(printable(f"writing {feed.description} to {log.path}; Ctrl-C ends"), flush=True)
            record_feed(feed, recorder, lambda: signals.arrived, _print_event)
        print(_summary(recorder))
        if recorder.failed:
            raise typer.Exit(FAILED)


def _summary(recorder: "Recorder") -> str:
    counts = [
        f"{recorder.unchanged} said the same as one shortly before",
        f"{counted(recorder.without_caption, 'image')} had none",
    ]
    if recorder.dropped:
        counts.append(f"{counted(recorder.dropped, 'image')} dropped for newer ones")
    if recorder.failed:
        counts.append(f"{recorder.failed} could not be written")
    return f"{counted(recorder.written, 'caption')} written; {', '.join(counts)}; {recorder.captions} in the log"


def _print_event(event: "FeedEvent") -> None:
    from smart_caption_ros.live import EventKind

    if event.kind is EventKind.ERROR:
        report_error(event.text)


@dataclass(frozen=True)
class FindOptions:
    log: LogOption = None
    near: Annotated[
        str, Option(metavar="X,Y[,Z]", help="Where the robot was, in metres and the frame of the poses.")
    ] = ""
    radius: Annotated[float, Option(help="Distance from --near in metres.")] = 2.0
    frame: Annotated[str, Option(help="Frame of --near; needed where the log has poses in several.")] = ""
    since: Annotated[
        str, Option(metavar="TIME", help="Earliest time: 2026-11-22, 2026-11-22T14:30, today, 2h, 3d.")
    ] = ""
    until: Annotated[str, Option(metavar="TIME", help="Latest time, as --since.")] = ""
    camera: Annotated[str, Option(help="Name of the camera.")] = ""
    robot: Annotated[str, Option(help="Name of the robot.")] = ""
    min_calibrated_confidence: Annotated[
        float, Option(min=0, max=1, help="Only captions of which at least this share is true.")
    ] = 0.0
    order: Annotated[
        str,
        Option(help="newest, or best: the newest 1000 ranked by BM25, to which words side by side add."),
    ] = "newest"
    limit: Annotated[int, Option(min=1, max=100_000, help="Maximum number of captions.")] = 20
    as_json: JsonOption = False
    count: Annotated[bool, Option("--count", help="Count all matches by camera, with the first and last time.")] = False
    pictures: Annotated[Path | None, Option(metavar="FOLDER", help="Write the pictures into this folder.")] = None


def find(
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="[WORDS]",
            help='Words that all occur, in any form ("cups" finds "cup"); \'"red cup"\' in this order; cup* begins a '
            "word. Without words: all captions.",
        ),
    ] = None,
    *,
    options: FindOptions,
) -> None:
    """Find captions: where and when something was seen."""
    from smart_caption_ros.caption_log import LogReader, Query
    from smart_caption_ros.caption_log.results import write_picture_of
    from smart_caption_ros.caption_log.times import iso_utc

    # Unknown options arrive as words, because words may begin with a dash.
    for word in words or ():
        if word.startswith("--"):
            raise typer.BadParameter(f"No such option: {word}", param_hint="[WORDS]")
    if not options.near and (options.frame, options.radius) != (FindOptions.frame, FindOptions.radius):
        raise typer.BadParameter("They need --near.", param_hint="--frame, --radius")
    if options.count and options.pictures is not None:
        raise typer.BadParameter("It is not for --count.", param_hint="--pictures")
    names = ("since", "until", "near", "frame", "camera", "robot", "min_calibrated_confidence", "order", "limit")
    settings = {name: getattr(options, name) for name in names}
    query = Query.parse(words=" ".join(words or ()), radius_m=options.radius, **settings)
    with LogReader(_path(options.log)) as reader:
        if options.count:
            _print_overview(reader.path, reader.overview(query), options.as_json)
            return
        rows = reader.find(query, with_pictures=options.pictures is not None)
        paths = [write_picture_of(row, options.pictures) if options.pictures else None for row in rows]
    if options.as_json:
        print_json(
            [
                {"id": row.id, "time": iso_utc(row.time_ns), **row.values, "picture": path and str(path)}
                for row, path in zip(rows, paths, strict=True)
            ]
        )
        return
    for row, path in zip(rows, paths, strict=True):
        _print_row(row, path)
    if not rows:
        print("nothing found")


def _path(log: Path | None) -> Path:
    from smart_caption_ros.caption_log.schema import default_log_path

    return log or default_log_path()


def _print_row(row: "LogRow", picture: Path | None) -> None:
    from smart_caption_ros.caption_log.results import place_of
    from smart_caption_ros.caption_log.times import local_time

    where = f"  {place_of(row.pose)}" if row.pose is not None else ""
    objects = ", ".join(f"{count} {name}" if count > 1 else name for name, count in row.classes.items())
    print_line(row.text, "bold")
    print_line(f"  {local_time(row.time_ns)}  {row.camera} of {row.robot}{where}", "dim")
    if objects:
        print_line(f"  objects: {objects}", "dim")
    if picture is not None:
        print_line(f"  {picture}", "dim")


def _print_overview(path: Path, overview: "Overview", as_json: bool) -> None:
    from smart_caption_ros.caption_log.row import NS_PER_MS
    from smart_caption_ros.caption_log.times import iso_utc, local_time

    first_ns, last_ns = (None if ms is None else ms * NS_PER_MS for ms in (overview.first_ms, overview.last_ms))
    size = path.stat().st_size
    if as_json:
        print_json(
            {
                "log": str(path),
                "bytes": size,
                "captions": overview.captions,
                "first": None if first_ns is None else iso_utc(first_ns),
                "last": None if last_ns is None else iso_utc(last_ns),
                "origins": [vars(origin) for origin in overview.origins],
            }
        )
        return
    print(printable(f"{counted(overview.captions, 'caption')} in {path} ({size / 1e6:.1f} MB)"))
    if first_ns is not None and last_ns is not None:
        print(f"from {local_time(first_ns)} to {local_time(last_ns)}")
    for origin in overview.origins:
        where = f"poses in {origin.pose_frame}" if origin.pose_frame else "no poses"
        print(printable(f"  {origin.captions:9}  {origin.camera} of {origin.robot}, {where}"))


def export(
    path: Annotated[Path, Argument(metavar="FILE.csv", help="File to write.")],
    *,
    log: LogOption = None,
    pictures: Annotated[
        Path | None, Option(metavar="FOLDER", help="Write the pictures into this folder instead of into the file.")
    ] = None,
) -> None:
    """Write the whole log as a CSV file."""
    from smart_caption_ros.caption_log import LogReader
    from smart_caption_ros.caption_log.results import export_csv

    source = _path(log).expanduser()  # as LogReader opens it
    check_output_file(path, inputs=[source, *(source.with_name(source.name + end) for end in ("-wal", "-shm"))])
    with LogReader(source) as reader:
        count = export_csv(reader.all_rows(), path, pictures)
    print(printable(f"{counted(count, 'caption')} in {path}"))
