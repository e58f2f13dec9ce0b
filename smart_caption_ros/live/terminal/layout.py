"""The lines of the view for a terminal of any size; pure, so that tests can read them.

rich's Layout divides a screen by ratios, and its Table squeezes columns; here a part gets the lines that another one
leaves, and columns that do not fit are left out.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache

from rich.console import Console
from rich.text import Text

from smart_caption_ros.live.live_caption import CaptionStatus, LiveCaption
from smart_caption_ros.live.statistics import CameraSummary, Health
from smart_caption_ros.live.terminal.caption_text import (
    DIM,
    HEALTH_STYLES,
    caption_text,
    clock_time,
    event_text,
    figures_text,
    legend,
    milliseconds,
    objects_text,
)
from smart_caption_ros.live.terminal.view_state import HistoryLine, ViewState
from smart_caption_ros.text import visible

MIN_WIDTH, MIN_HEIGHT = 30, 6

_PROGRAM = "smart-caption watch"
_ELLIPSIS = "..."
_SILENT_S = 5.0
"""The age of the last caption from which on the list of cameras shows it in a colour."""
_KEYS = ("q quit", "space pause", "tab camera", "arrows scroll")
# Column titles and widths of the list of cameras; the name and the health share what is left.
_COLUMNS = (("last", 6), ("rate/s", 7), ("age p50", 8), ("p95", 8), ("drops", 6), ("failed", 7))
_NAME_WIDTHS = (8, 16)
_FAILED = (CaptionStatus.ERROR, CaptionStatus.STALE)


def render(
    state: ViewState,
    *,
    size: tuple[int, int],
    now_s: float,
    now_monotonic_s: float,
    description: str = "",
    waiting_for: Sequence[str] = (),
) -> list[Text]:
    """Return the lines of the view, as many as the terminal has, none wider than it.

    Args:
        state: what is shown.
        size: width and height of the terminal in cells.
        now_s: seconds since the epoch.
        now_monotonic_s: of :func:`time.monotonic`.
        description: what the feed reads.
        waiting_for: sentences for the time without captions.
    """
    width, height = size
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        sentence = f"The window has {width} x {height} cells; {MIN_WIDTH} x {MIN_HEIGHT} are needed. q quits."
        lines = _wrapped(Text(sentence), max(1, width))
    else:
        lines = _full_view(state, size, now_s, now_monotonic_s, description, waiting_for)
    lines = [_fitted(line, width) for line in lines[:height]]
    return lines + [Text()] * (height - len(lines))


def history_lines(height: int, cameras: int) -> int:
    """Return the number of lines of the history that a terminal of this height shows, for scrolling by pages."""
    return max(1, height - 8 - _camera_lines(height, cameras))


def _full_view(
    state: ViewState,
    size: tuple[int, int],
    now_s: float,
    now_monotonic_s: float,
    description: str,
    waiting_for: Sequence[str],
) -> list[Text]:
    width, height = size
    lines = [_title(state, width, now_s, description)]
    if height >= 10:
        lines += _cameras(state, width, _camera_lines(height, len(state.cameras)), now_monotonic_s)
    footer = _footer(state, width, tall=height >= 12)
    room = height - len(lines) - len(footer)
    newest = state.newest()
    if newest is None:
        body = _waiting(waiting_for, width)
    else:
        body = _caption(newest, width, room if room < 5 else max(3, min(room // 2, 8)))
        if room - len(body) >= 2:
            body += _history(state, width, room - len(body))
    body = body[:room]
    return [*lines, *body, *[Text()] * (room - len(body)), *footer]


def _title(state: ViewState, width: int, now_s: float, description: str) -> Text:
    left = f" {_PROGRAM}  {visible(description)}"
    right = f" {f'PAUSED, {state.new_items} new ' if state.is_paused else ''}{clock_time(now_s)} "
    title = _fitted(Text(left), max(0, width - len(right)), padded=True)
    title.append(right)
    title.stylize("reverse")
    return title


def _camera_lines(height: int, cameras: int) -> int:
    """Return the number of lines of the list of cameras, its titles included."""
    return 0 if height < 10 or not cameras else 1 + min(cameras, max(1, height // 5))


def _cameras(state: ViewState, width: int, count: int, now_monotonic_s: float) -> list[Text]:
    if not count:
        return []
    names = [visible(camera.camera, 60) for camera in state.cameras]
    name_width = max(_NAME_WIDTHS[0], min(_NAME_WIDTHS[1], max(map(len, names)))) + 4
    columns = list(_COLUMNS)
    while columns and name_width + sum(cells for _, cells in columns) > width:
        columns.pop()
    titles = "".join(title.rjust(cells) for title, cells in columns)
    lines = [Text(f"{'  # camera':<{name_width}}{titles}  health", style=f"{DIM} underline")]
    shown, rows = count - 1, list(enumerate(zip(state.cameras, names, strict=True), 1))
    if len(rows) > shown:
        # The chosen camera stays in sight; the line of one that is not shown says how many there are.
        first = max(0, min(len(rows) - shown, next((n - 1 for n, (c, _) in rows if c.camera == state.camera), 0)))
        hidden = len(rows) - shown
        rows = rows[first : first + shown]
        lines[0].append(f"  ({hidden} more)")
    for number, (camera, name) in rows:
        is_chosen = camera.camera == state.camera
        row = _fitted(Text(f"{'>' if is_chosen else ' '} {number} {name}"), name_width, padded=True)
        for (_, cells), (value, style) in zip(columns, _cells(camera, now_monotonic_s), strict=False):
            row.append(value.rjust(cells) if len(value) < cells else f" {value[: cells - 1]}", style=style)
        row.append("  ")
        row.append_text(_health(camera))
        if is_chosen:
            row.stylize("bold")
        lines.append(row)
    return lines


def _cells(camera: CameraSummary, now_monotonic_s: float) -> list[tuple[str, str]]:
    """Return text and style of the columns of a camera."""
    last_s = camera.last_received_monotonic_s
    silent_s = None if last_s is None else max(0.0, now_monotonic_s - last_s)
    failed = sum(camera.by_status.get(status, 0) for status in _FAILED)
    return [
        ("-" if silent_s is None else _short(silent_s), "yellow" if (silent_s or 0) > _SILENT_S else ""),
        (f"{camera.rate_hz:.1f}", ""),
        ("-" if camera.age_p50_s is None else milliseconds(camera.age_p50_s), ""),
        ("-" if camera.age_p95_s is None else milliseconds(camera.age_p95_s), ""),
        (str(camera.dropped), ""),
        (str(failed), "bold red" if failed else ""),
    ]


def _health(camera: CameraSummary) -> Text:
    if not camera.is_online:
        return Text("GONE", style="bold red")
    if camera.health is Health.UNKNOWN:
        return Text(f"{camera.lost} lost here" if camera.lost else "")
    message = f": {visible(camera.health_message)}" if camera.health_message else ""
    lost = f"{camera.lost} lost here, " if camera.lost else ""
    return Text(f"{lost}{camera.health.value}{message}", style=HEALTH_STYLES[camera.health])


def _caption(live: LiveCaption, width: int, room: int) -> list[Text]:
    """Return the newest caption with its objects and figures, in at most `room` lines."""
    text = caption_text(live)
    text.stylize("bold")
    sentence = _wrapped(text, width)
    if room < 3:
        return sentence[:room]
    head = Text.assemble((f"{clock_time(live.received_s)} {visible(live.camera, 40)}  ", DIM))
    head.append_text(figures_text(live))
    heads = _wrapped(head, width)[: max(1, room - 5)]
    kept = sentence[: max(1, room - len(heads) - 1)]
    return [*heads, *kept, *_wrapped(objects_text(live), width)[: max(1, room - len(heads) - len(kept))]]


def _history(state: ViewState, width: int, room: int) -> list[Text]:
    lines, scrolled = state.history(room - 1)
    title = " history" if not scrolled else f" history, {scrolled} newer below"
    chosen = "" if state.camera is None else f" of {visible(state.camera, 40)}"
    rule = Text(f"{'-' * 3}{title}{chosen} ".ljust(width, "-"), style=DIM)
    names = [visible(camera.camera, 60) for camera in state.cameras]
    name_width = min(_NAME_WIDTHS[1], max(map(len, names), default=0)) if state.camera is None else 0
    return [rule, *(_history_line(line, name_width, width) for line in lines)]


def _history_line(shown: HistoryLine, name_width: int, width: int) -> Text:
    item = shown.item
    line = Text.assemble((f"{clock_time(shown.first_s)} ", DIM))
    if name_width:
        name = _fitted(Text(visible(item.camera or "", 60)), name_width, padded=True)
        line.append(f"{name.plain} ", style=DIM)
    line.append_text(caption_text(item) if isinstance(item, LiveCaption) else event_text(item))
    if shown.count > 1:
        times = f"  x {shown.count}, {_short(shown.span_s)}"
        line = _fitted(line, max(0, width - len(times))).append(times, style=DIM)
    return line


def _waiting(waiting_for: Sequence[str], width: int) -> list[Text]:
    lines = [Text(), Text("No caption yet. Waiting for:", style="bold")]
    for sentence in waiting_for:
        lines += _wrapped(Text(f"  {visible(sentence, 400)}"), width)
    return lines


def _footer(state: ViewState, width: int, *, tall: bool) -> list[Text]:
    keys = [key.replace("pause", "go on") if state.is_paused else key for key in _KEYS]
    while len(keys) > 1 and len("  ".join(keys)) + 2 > width:
        keys.pop()
    line = _fitted(Text(f" {'  '.join(keys)}", style="reverse"), width, padded=True)
    explained = Text(" ").append_text(legend())
    return [explained if explained.cell_len <= width else Text(), line] if tall else [line]


def _short(seconds: float) -> str:
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} m" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _wrapped(text: Text, width: int) -> list[Text]:
    """Break a text into lines of at most `width` cells."""
    return list(text.wrap(_console(), width))


@lru_cache(maxsize=1)
def _console() -> Console:
    """Return a console for wrapping, which prints nothing; made once, because it looks at the environment."""
    return Console(file=io.StringIO(), legacy_windows=False)


def _fitted(text: Text, width: int, *, padded: bool = False) -> Text:
    """Return a text of at most `width` cells; an ellipsis replaces the end of a wider one."""
    fitted = text.copy()
    if fitted.cell_len > width:
        fitted.truncate(max(0, width - len(_ELLIPSIS)), overflow="crop")
        fitted.append(_ELLIPSIS[:width])
    if padded:
        fitted.append(" " * (width - fitted.cell_len))
    return fitted
