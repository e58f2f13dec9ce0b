"""Live captions on a terminal: a view that is redrawn periodically, and plain lines for pipes.

Nouns have a mark as well as a colour, for people who do not see colours and terminals without colours.
"""

import io
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from smart_caption_ros.captioning.vocabulary import word_starts
from smart_caption_ros.live.feed import CaptionFeed, EventKind, FeedEvent, FeedItem
from smart_caption_ros.live.statistics import CameraSummary, Health
from smart_caption_ros.record import CaptionRecord, CaptionStatus, NounState
from smart_caption_ros.signals import EndSignals
from smart_caption_ros.text import visible

_REDRAW_S = 0.25
_SILENT_S = 5.0
"""Age of the last caption of a camera above which it is shown in a colour, seconds."""
_EXPLAIN_AFTER_S = 3.0
"""Time without a caption after which a sentence says what the feed waits for, seconds."""
_LINES = 200
"""Number of lines that are kept; the terminal shows those that fit."""
_MAX_ITEMS = 1000  # taken before the next redraw, so that a fast feed does not prevent it
_MAX_TEXT, _MAX_WORDS, _MAX_WORD, _MAX_OBJECTS = 2000, 100, 40, 30
_QUIET = (EventKind.APPEARED, EventKind.ENDED)

_DIM = "dim"
_MARKS = {NounState.SUPPORTED: "+", NounState.UNSUPPORTED: "?", NounState.UNCHECKED: ""}
_NOUN_STYLES = {NounState.SUPPORTED: "bold bright_cyan", NounState.UNSUPPORTED: "bold yellow"}
_HEALTH_STYLES = {Health.OK: "green", Health.WARNING: "yellow", Health.ERROR: "bold red", Health.UNKNOWN: _DIM}
_STATUS_STYLES = {
    CaptionStatus.NOTHING_FOUND: _DIM,
    CaptionStatus.LOW_CONFIDENCE: "yellow",
    CaptionStatus.STALE: "yellow",
    CaptionStatus.ERROR: "bold red",
}


def watch(feed: CaptionFeed) -> int:
    """Show the captions of a feed on the terminal until SIGINT or SIGTERM.

    Returns:
        The exit status: 128 and the number of the signal, 130 after Ctrl-C.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Unicode
    lines: deque[RepeatedLine] = deque(maxlen=_LINES)
    with EndSignals() as signals, Live(auto_refresh=False, screen=True, console=Console(highlight=False)) as screen:
        while not signals.arrived:
            screen.update(view(feed, lines), refresh=True)
            end_s = time.monotonic() + _REDRAW_S
            for _ in range(_MAX_ITEMS):
                item = feed.next(max(0.0, end_s - time.monotonic()))
                if item is None:
                    break
                add_line(lines, item)
            if feed.ended:
                time.sleep(_REDRAW_S)  # `next` no longer waits
    return 128 + signals.number


def caption_records(
    feed: CaptionFeed, *, count: int | None = None, report: Callable[[str], object]
) -> Iterator[CaptionRecord]:
    """Yield captions until the feed ends, at most `count`.

    Args:
        report: prints a sentence that says what the feed waits for or what failed.
    """
    taken = 0
    explain_s = time.monotonic() + _EXPLAIN_AFTER_S
    while not feed.ended and (count is None or taken < count):
        item = feed.next(0.5)
        if isinstance(item, CaptionRecord):
            yield item
            taken += 1
        elif isinstance(item, FeedEvent) and item.kind not in _QUIET:
            report(f"{visible(item.camera or '', 60)}: {visible(item.text, 400)}".lstrip(": "))
        if not taken and time.monotonic() > explain_s:
            explain_s = float("inf")
            if feed.waiting_for:
                report(f"waiting for {'; '.join(visible(sentence, 400) for sentence in feed.waiting_for)}")


def caption_line(record: CaptionRecord) -> str:
    """Format a caption as a line: time, camera, the caption with its marks, and the figures in parentheses."""
    line = f"{_clock_time(record)} {visible(record.camera, 60)}: {_caption(record).plain}"
    figures = _figures(record).plain
    return f"{line} ({figures})" if figures else line


@dataclass
class RepeatedLine:
    """An event, or the newest of several equal captions of a camera in succession."""

    item: FeedItem
    count: int = 1


def add_line(lines: deque[RepeatedLine], item: FeedItem) -> None:
    """Add a caption or event to the lines, newest first; a caption equal to the last one of its camera is counted.

    Captions are equal if their words, the marks of their nouns and their status are.
    """
    if isinstance(item, CaptionRecord):
        item = replace(item, image=None)  # images would fill the memory
        last = next((line for line in lines if line.item.camera == item.camera), None)
        if last is not None and isinstance(last.item, CaptionRecord) and _caption(last.item) == _caption(item):
            last.item, last.count = item, last.count + 1
            return
    lines.appendleft(RepeatedLine(item))


def view(feed: CaptionFeed, lines: deque[RepeatedLine]) -> Group:
    """Build the view: a table of the cameras, the newest caption, and the lines."""
    title = f"smart-caption watch  {datetime.now():%H:%M:%S}  Ctrl-C ends  {visible(feed.description)}"
    parts: list[Table | Text] = [Text(title, "reverse", no_wrap=True, overflow="ellipsis")]
    parts.append(_camera_table(feed.cameras, time.monotonic()))
    captions = [line.item for line in lines if isinstance(line.item, CaptionRecord)]
    if captions:
        newest = max(captions, key=lambda record: record.received_monotonic_s)
        parts += [Text(), _caption(newest), _objects(newest), _figures(newest), Text()]
    else:
        parts += [Text("\nNo caption yet. Waiting for:"), *(Text(f"  {visible(s, 400)}") for s in feed.waiting_for)]
    return Group(*parts, *map(_line, list(lines)))


def _camera_table(cameras: tuple[CameraSummary, ...], now_s: float) -> Table:
    table = Table("camera", box=None, pad_edge=False, expand=True)
    for title in ("last", "rate/s", "age p50", "p95", "drops", "failed"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("health", ratio=1, no_wrap=True)
    for camera in cameras:
        last_s = camera.last_received_monotonic_s
        silent_s = None if last_s is None else max(0.0, now_s - last_s)
        failed = sum(camera.by_status.get(status, 0) for status in (CaptionStatus.ERROR, CaptionStatus.STALE))
        table.add_row(
            Text(visible(camera.camera, _MAX_WORD)),
            Text("-" if silent_s is None else f"{silent_s:.0f} s", "yellow" if (silent_s or 0) > _SILENT_S else ""),
            f"{camera.rate_hz:.1f}",
            "-" if camera.age_p50_s is None else _duration(camera.age_p50_s),
            "-" if camera.age_p95_s is None else _duration(camera.age_p95_s),
            str(camera.dropped),
            Text(str(failed), "bold red" if failed else ""),
            _health(camera),
        )
    return table


def _health(camera: CameraSummary) -> Text:
    if not camera.is_online:
        return Text("GONE", "bold red")
    known = camera.health is not Health.UNKNOWN
    message = f": {visible(camera.health_message)}" if camera.health_message and known else ""
    parts = [f"{camera.lost} lost here"] * bool(camera.lost) + [f"{camera.health.value}{message}"] * known
    return Text(", ".join(parts), _HEALTH_STYLES[camera.health])


def _line(shown: RepeatedLine) -> Text:
    item = shown.item
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{_clock_time(item)} {visible(item.camera or '', _MAX_WORD)} ", _DIM)
    if shown.count > 1:
        line.append(f"x {shown.count} ", _DIM)
    if isinstance(item, CaptionRecord):
        line.append_text(_caption(item))
    else:
        style = {EventKind.ERROR: "bold red", EventKind.GONE: "yellow"}.get(item.kind, _DIM)
        line.append(f"[{item.kind.value}] {visible(item.text)}", style)
    return line


def _caption(record: CaptionRecord) -> Text:
    """Format a caption with its nouns marked, or the status of an image without a caption."""
    style = _STATUS_STYLES.get(record.status, "")
    if not record.caption.text:
        return Text(f"({record.status.value}: {visible(record.status_message)})", style)
    states: dict[int, tuple[NounState, bool]] = {}  # word index -> state, whether the word is the noun's first
    for noun in record.grounding.nouns[:_MAX_WORDS] if record.grounding is not None else ():
        length = len(noun.text.split())
        for place in range(noun.word_index, noun.word_index + min(length, _MAX_WORDS)):
            states.setdefault(place, (record.state_of(noun), place == noun.word_index))
    text = Text()
    sentence = record.caption.text[:_MAX_TEXT]
    words = [word.text for word in record.caption.words[: _MAX_WORDS + 1]] or sentence.split()
    for place, (word, start) in enumerate(zip(words[:_MAX_WORDS], word_starts(words, sentence), strict=False)):
        # A clitic ("'s") and a comma follow their word without a space.
        if place and sentence[start - 1 : start] == " ":
            text.append(" ")
        state, is_first = states.get(place, (NounState.UNCHECKED, False))
        text.append(f"{_MARKS[state] if is_first else ''}{visible(word, _MAX_WORD)}", _NOUN_STYLES.get(state))
    if len(words) > _MAX_WORDS:
        text.append(" ...")
    if record.status is not CaptionStatus.OK:
        text.append(f" ({record.status.value})", style)
    return text


def _objects(record: CaptionRecord) -> Text:
    """Format the detected objects with their scores, and marks for those that the caption names or misses."""
    objects = record.caption.objects
    if not record.looked_for_objects:
        reason = f" ({visible(record.coverage_message)})" if record.coverage_message else ""
        return Text(f"objects: not known{reason}", _DIM)
    named = {noun.object_index for noun in record.grounding.nouns} if record.grounding is not None else set()
    missed = record.grounding.missed_classes if record.grounding is not None else ()
    text = Text("objects: " if objects else "objects: none detected", _DIM)
    for place, item in enumerate(objects[:_MAX_OBJECTS]):
        mark = "+" if place in named else "-" if item.class_name in missed else ""
        style = _NOUN_STYLES[NounState.SUPPORTED] if place in named else "not dim"
        text.append(f"{mark}{visible(item.class_name, _MAX_WORD)} ", style).append(f"{item.score:.2f}  ")
    if len(objects) > _MAX_OBJECTS:
        text.append(f"and {len(objects) - _MAX_OBJECTS} more")
    return text


def _figures(record: CaptionRecord) -> Text:
    """Format confidence, calibrated confidence, coverage, noun support and times of a caption as a line."""
    caption, grounding, parts = record.caption, record.grounding, []
    if caption.text:
        parts.append(f"confidence {caption.confidence:.2f}")
    if caption.calibrated_confidence is not None:
        parts.append(f"calibrated {caption.calibrated_confidence:.2f}")
    if caption.text and grounding is not None and grounding.coverage is not None:
        parts.append(f"coverage {grounding.coverage:.2f}")
        if grounding.noun_support is not None:
            parts.append(f"support {grounding.noun_support:.2f}")
    if record.age_s is not None:
        parts.append(f"age {_duration(record.age_s)}")
    if caption.timing.total_s:
        parts.append(f"work {_duration(caption.timing.total_s)}")
    if record.dropped:
        parts.append(f"dropped {record.dropped}")
    if record.name:
        parts.append(visible(record.name, _MAX_WORD))
    return Text("  ".join(parts), _DIM)


def _clock_time(item: FeedItem) -> str:
    return datetime.fromtimestamp(item.received_s).strftime("%H:%M:%S")


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.0f} s" if seconds < 7200 else f"{seconds / 3600:.0f} h"
