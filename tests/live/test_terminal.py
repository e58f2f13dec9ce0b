"""The view and its lines: the marks of nouns, repetitions, and nothing from outside that moves the cursor."""

import io
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from smart_caption_ros.captioning import Caption, DetectedObject, Timing, Word
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.live import CaptionFeed, EventKind, FeedEvent, Health
from smart_caption_ros.live.terminal import add_line, caption_line, view
from smart_caption_ros.record import CaptionRecord, CaptionStatus, CoverageReason, LazyImage

MEASURED, UNKNOWN = CoverageReason.NONE, CoverageReason.DISABLED
BOX = (0.0, 0.0, 10.0, 10.0)
ATTACK = "\x1b]0;title\x07\x1b[2J\x9b5A\r\n\tcup\u202e\u2028 \x00"


def caption(text="the dog 's red cup on a table", camera="front", **fields):
    """The dog is supported, and the cup, a noun of two words, is not."""
    words = text.split()
    objects = (DetectedObject("dog", 1, 0.91, BOX), DetectedObject("chair", 2, 0.5, BOX))
    nouns = (GroundedNoun("dog", "dog", 1, 0, 1.0), GroundedNoun("red cup", "red cup", 3, None, 0.0))
    grounding = Grounding(nouns, 0.5, 0.25, ("chair",), ("red cup",), (), 0.001)
    made = Caption(
        text.replace(" 's", "'s"), tuple(Word(word, -0.1, BOX) for word in words), -1.0, 0.76, (),
        Timing(0.001, 0.002, 0.003, 0.055, 8), (64, 48), "tiny", "engine", objects, 0.62,
    )  # fmt: skip
    live = CaptionRecord(
        made,
        camera,
        f"/{camera}",
        received_s=1.7e9,
        grounding=grounding,
        coverage_reason=MEASURED,
        age_at_start_s=0.029,
    )
    return replace(live, **fields)


class Feed(CaptionFeed):
    description, waiting_for = "domain 7", (f"a publisher of /caption{ATTACK}",)


def lines_of(*items):
    lines = deque()
    for item in items:
        add_line(lines, item)
    return lines


def shown(*items, width=80, height=24, feed=None):
    feed = feed or Feed()
    for item in items:
        if isinstance(item, CaptionRecord):
            feed.add(item)
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(view(feed, lines_of(*items)))
    return console.file.getvalue()


def test_cameras_the_newest_caption_and_the_lines_before_it_are_shown():
    page = shown(caption(dropped=12), caption("a floor", "rear", grounding=None, coverage_reason=UNKNOWN), caption())
    lines = page.splitlines()
    assert lines[0].startswith("smart-caption watch ")
    assert lines[0].endswith("Ctrl-C ends  domain 7")
    assert lines[2].split()[:2] == ["front", "0"]
    assert "85 ms" in lines[2]
    assert " 12 " in lines[2]
    assert lines[3].startswith("rear ")
    assert lines[5] == "the +dog's ?red cup on a table"
    assert lines[6].rstrip() == "objects: +dog 0.91  -chair 0.50"
    assert "front x 2 the +dog's ?red cup on a table" in page
    assert "rear a floor" in page
    assert "objects: not known" in shown(caption(coverage_reason=UNKNOWN))


def test_without_captions_the_view_says_what_it_waits_for():
    assert "No caption yet. Waiting for:\n  a publisher of /caption\\x1b]0;title" in shown()


@settings(max_examples=30)
@given(st.integers(1, 120), st.text(max_size=60), st.text(min_size=1, max_size=30), st.integers(0, 5))
def test_nothing_from_outside_moves_the_cursor(width, text, camera, cameras):
    items = [caption(f"{text} {ATTACK}", f"{camera}{number}", coverage_message=text) for number in range(cameras)]
    items.append(FeedEvent(EventKind.ERROR, f"{text}{ATTACK}", camera))
    items.append(caption("", camera, status=CaptionStatus.ERROR, status_message=ATTACK + text))
    for page in [
        shown(*items, width=width),
        *(caption_line(item) for item in items if isinstance(item, CaptionRecord)),
    ]:
        assert all(character.isprintable() for line in page.split("\n") for character in line)


def test_texts_of_a_stranger_are_bounded():
    live = caption("x" * 10**6)
    assert len(caption_line(live)) < 500
    made = replace(live.caption, words=(), text="y " * 10**6, objects=live.caption.objects * 9999)
    assert len(caption_line(replace(live, caption=made))) < 2000
    assert "and 19968 more" in shown(replace(live, caption=made), width=200)


def test_captions_of_a_camera_that_say_the_same_are_one_line_with_their_number():
    image = LazyImage.of_pixels(np.zeros((2, 2, 3), np.uint8))
    items = []
    for second in range(9):
        reason = MEASURED if second < 8 else UNKNOWN
        items += [caption("a cup", image=image), caption("a floor", "rear", coverage_reason=reason)]
    lines = lines_of(*items, FeedEvent(EventKind.GONE, "no publisher", "front"), caption("a cup"))
    assert [(line.item.camera, line.count) for line in lines] == [
        ("front", 1),
        ("front", 1),  # an event begins a new line
        ("rear", 1),  # the marks of the nouns are part of what a line says
        ("rear", 8),
        ("front", 9),
    ]
    assert all(line.item.image is None for line in lines if isinstance(line.item, CaptionRecord))


@pytest.mark.parametrize(
    ("health", "online", "expected"),
    [
        (Health.ERROR, True, "error: no image on /image"),
        (Health.OK, False, "GONE"),
        (Health.UNKNOWN, True, "2 lost here"),
    ],
)
def test_health_losses_and_a_camera_that_is_gone_are_shown(health, online, expected):
    feed = Feed(capacity=1)
    for _ in range(3):
        feed.add(caption())
    feed.set_health("front", health, "no image on /image")
    if not online:
        feed.remove_camera("front", "gone")
    assert expected in shown(width=120, feed=feed)
