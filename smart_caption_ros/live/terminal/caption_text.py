"""Captions, their objects and figures as styled text.

A noun has a mark as well as a colour, for people who do not see colours and terminals that have none.
"""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from smart_caption_ros.captioning.vocabulary import word_starts
from smart_caption_ros.live.live_caption import CaptionStatus, EventKind, FeedEvent, LiveCaption, NounState
from smart_caption_ros.live.statistics import Health
from smart_caption_ros.text import visible

SUPPORTED_MARK, UNSUPPORTED_MARK, MISSED_MARK = "+", "?", "-"

NOUN_STYLES = {NounState.SUPPORTED: "bold bright_cyan", NounState.UNSUPPORTED: "bold yellow"}
HEALTH_STYLES = {Health.OK: "green", Health.WARNING: "yellow", Health.ERROR: "bold red", Health.UNKNOWN: "dim"}
STATUS_STYLES = {
    CaptionStatus.OK: "",
    CaptionStatus.NOTHING_FOUND: "dim",
    CaptionStatus.LOW_CONFIDENCE: "yellow",
    CaptionStatus.STALE: "yellow",
    CaptionStatus.ERROR: "bold red",
}
DIM = "dim"

_MARKS = {NounState.SUPPORTED: SUPPORTED_MARK, NounState.UNSUPPORTED: UNSUPPORTED_MARK, NounState.UNCHECKED: ""}
_MAX_TEXT, _MAX_WORDS, _MAX_WORD, _MAX_OBJECTS = 2000, 100, 40, 30


def legend() -> Text:
    """Return a line that explains the marks."""
    return Text.assemble(
        (f"{SUPPORTED_MARK}noun", NOUN_STYLES[NounState.SUPPORTED]),
        (" object detected  ", DIM),
        (f"{UNSUPPORTED_MARK}noun", NOUN_STYLES[NounState.UNSUPPORTED]),
        (" none detected  ", DIM),
        f"{MISSED_MARK}object",
        (" not in the caption", DIM),
    )


def caption_text(live: LiveCaption) -> Text:
    """Return the caption with its nouns marked; what became of the image where there is none."""
    if not live.caption.text:
        return Text(f"({live.status.value}: {visible(live.status_message)})", style=STATUS_STYLES[live.status])
    states: dict[int, tuple[NounState, bool]] = {}  # word index -> state, whether the word is the noun's first
    for noun in live.grounding.nouns[:_MAX_WORDS] if live.grounding is not None else ():
        length = len(noun.text.split())
        for place in range(noun.word_index, noun.word_index + min(length, _MAX_WORDS)):
            states.setdefault(place, (live.state_of(noun), place == noun.word_index))
    text = Text()
    sentence = live.caption.text[:_MAX_TEXT]
    words = [word.text for word in live.caption.words[: _MAX_WORDS + 1]] or sentence.split()
    for place, (word, start) in enumerate(zip(words[:_MAX_WORDS], word_starts(words, sentence), strict=False)):
        # A clitic ("'s") and a comma follow their word without a space.
        if place and sentence[start - 1 : start] == " ":
            text.append(" ")
        state, is_first = states.get(place, (NounState.UNCHECKED, False))
        mark = _MARKS[state] if is_first else ""
        text.append(f"{mark}{visible(word, _MAX_WORD)}", style=NOUN_STYLES.get(state))
    if len(words) > _MAX_WORDS:
        text.append(" ...")
    if live.status is not CaptionStatus.OK:
        text.append(f" ({live.status.value})", style=STATUS_STYLES[live.status])
    return text


def objects_text(live: LiveCaption) -> Text:
    """Return the detected objects with their scores; a mark says which of them the caption names and misses."""
    if not live.looked_for_objects:
        reason = f" ({visible(live.coverage_reason)})" if live.coverage_reason else ""
        return Text(f"objects: not known{reason}", style=DIM)
    if not live.caption.objects:
        return Text("objects: none detected", style=DIM)
    nouns = live.grounding.nouns if live.grounding is not None else ()
    named = {noun.object_index for noun in nouns}
    missed = set(live.grounding.missed_classes) if live.grounding is not None else set()
    text = Text.assemble(("objects: ", DIM))
    for place, item in enumerate(live.caption.objects[:_MAX_OBJECTS]):
        if place:
            text.append("  ")
        mark, style = "", ""
        if place in named:
            mark, style = SUPPORTED_MARK, NOUN_STYLES[NounState.SUPPORTED]
        elif item.class_name in missed:
            mark = MISSED_MARK
        text.append(f"{mark}{visible(item.class_name, _MAX_WORD)} ", style=style)
        text.append(f"{item.score:.2f}", style=DIM)
    if len(live.caption.objects) > _MAX_OBJECTS:
        text.append(f"  and {len(live.caption.objects) - _MAX_OBJECTS} more")
    return text


def figures_text(live: LiveCaption) -> Text:
    """Return confidence, calibrated confidence, coverage, noun support and times of a caption on a line."""
    parts = [f"confidence {live.caption.confidence:.2f}"] if live.caption.text else []
    if live.caption.calibrated_confidence is not None:
        parts.append(f"calibrated {live.caption.calibrated_confidence:.2f}")
    parts += coverage_parts(live) if live.caption.text else []
    if live.age_s is not None:
        parts.append(f"age {milliseconds(live.age_s)}")
    if live.caption.timing.total_s:
        parts.append(f"work {milliseconds(live.caption.timing.total_s)}")
    if live.dropped:
        parts.append(f"dropped {live.dropped}")
    if live.name:
        parts.append(visible(live.name, _MAX_WORD))
    return Text("  ".join(parts), style=DIM)


def coverage_parts(live: LiveCaption) -> list[str]:
    """Return coverage and noun support of a caption, as far as they were measured."""
    grounding = live.grounding
    if grounding is None or grounding.coverage is None:
        return []
    coverage = f"coverage {grounding.coverage:.2f}"
    return [coverage] if grounding.noun_support is None else [coverage, f"support {grounding.noun_support:.2f}"]


def event_text(event: FeedEvent) -> Text:
    """Return an event on a line."""
    style = "bold red" if event.kind is EventKind.ERROR else "yellow" if event.kind is EventKind.GONE else DIM
    return Text(f"[{event.kind.value}] {visible(event.text)}", style=style)


def clock_time(seconds: float) -> str:
    """Return the local time of day."""
    return datetime.fromtimestamp(seconds).strftime("%H:%M:%S")


def milliseconds(seconds: float) -> str:
    """Return a duration in milliseconds, above ten seconds in seconds, above two hours in hours."""
    if seconds < 10:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.0f} s" if seconds < 7200 else f"{seconds / 3600:.0f} h"
