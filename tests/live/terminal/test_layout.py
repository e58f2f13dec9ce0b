"""The view at every size: lines that fit, the marks of nouns, and nothing from outside that moves the cursor."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from smart_caption_ros.captioning import Caption, DetectedObject, Timing, Word
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.live import CaptionStatus, EventKind, FeedEvent, Health, LiveCaption, LiveImage, LiveStatistics
from smart_caption_ros.live.terminal.keys import Key
from smart_caption_ros.live.terminal.layout import MIN_HEIGHT, MIN_WIDTH, history_lines, render
from smart_caption_ros.live.terminal.lines import caption_line
from smart_caption_ros.live.terminal.view_state import ViewState
from smart_caption_ros.text import visible

BOX = (0.0, 0.0, 10.0, 10.0)
ATTACK = "\x1b]0;title\x07\x1b[2J\x9b5A\r\n\tcup\u202e\u2028 \x00"


def caption(text: str = "the dog 's red cup on a table", camera: str = "front", **fields: object) -> LiveCaption:
    """The dog is supported, the cup is not, the table is a noun of two words that is cut off."""
    words = text.split()
    objects = (DetectedObject("dog", 1, 0.91, BOX), DetectedObject("chair", 2, 0.5, BOX))
    nouns = (GroundedNoun("dog", "dog", 1, 0, 1.0), GroundedNoun("red cup", "red cup", 3, None, 0.0))
    grounding = Grounding(nouns, 0.5, 0.25, ("chair",), ("red cup",), (), 0.001)
    made = Caption(
        text.replace(" 's", "'s"), tuple(Word(word, -0.1, BOX) for word in words), -1.0, 0.76, (),
        Timing(0.001, 0.002, 0.003, 0.055, 8), (64, 48), "tiny", "engine", objects, 0.62,
    )  # fmt: skip
    live = LiveCaption(
        camera, f"/{camera}", made, received_s=1.7e9, received_monotonic_s=100.0, grounding=grounding,
        looked_for_objects=True, age_s=0.085,
    )  # fmt: skip
    return replace(live, **fields)  # type: ignore[arg-type]


def state_with(*items: LiveCaption | FeedEvent) -> ViewState:
    state = ViewState()
    statistics: dict[str, LiveStatistics] = {}
    for item in items:
        state.add(item)
        if isinstance(item, LiveCaption):
            statistics.setdefault(item.camera, LiveStatistics(item.camera, item.source)).add(item)
    state.set_cameras(tuple(camera_statistics.summary(101.0) for camera_statistics in statistics.values()))
    return state


def screen(state: ViewState, width: int = 80, height: int = 24, waiting_for: tuple[str, ...] = ()) -> list[str]:
    lines = render(
        state, size=(width, height), now_s=1.7e9, now_monotonic_s=101.0, description="domain 7", waiting_for=waiting_for
    )
    assert len(lines) == height
    assert all(line.cell_len <= width for line in lines)
    assert all(character.isprintable() for line in lines for character in line.plain), "a control character"
    return [line.plain for line in lines]


def test_a_terminal_of_80_by_24_shows_everything() -> None:
    state = state_with(caption(dropped=12), caption("a floor", camera="rear", grounding=None, looked_for_objects=False))
    lines = screen(state)
    page = "\n".join(lines)
    assert lines[0].startswith(" smart-caption watch  domain 7")
    assert [line.split()[0] for line in lines[2:4]] == ["1", "2"]
    assert "front" in lines[2]
    assert "85 ms" in lines[2]
    assert " 12 " in lines[2]
    assert "a floor" in lines[5], "the newest caption"
    assert "objects: not known" in page
    state.press(1, 10)
    page = "\n".join(screen(state))
    assert "the +dog's ?red cup on a table" in page
    assert "objects: +dog 0.91  -chair 0.50" in page
    assert "confidence 0.76  calibrated 0.62  coverage 0.50  support 0.25" in page
    assert "age 85 ms" in page
    assert "history of front" in page
    assert "+noun object detected" in page
    assert page.endswith(f"{' q quit  space pause  tab camera  arrows scroll':<80}")


@pytest.mark.parametrize("size", [(200, 60), (80, 24), (40, 10), (MIN_WIDTH, MIN_HEIGHT)])
def test_the_newest_caption_and_the_way_out_are_there_at_every_size(size: tuple[int, int]) -> None:
    page = "\n".join(screen(state_with(*[caption(camera=f"camera {n}") for n in range(12)]), *size))
    assert "+dog's" in page
    assert "q quit" in page


@pytest.mark.parametrize("size", [(29, 24), (80, 5), (1, 1), (10, 3), (200, 1)])
def test_a_window_that_is_too_small_says_which_size_is_needed(size: tuple[int, int]) -> None:
    lines = screen(state_with(caption()), *size)
    sentence = f"The window has {size[0]} x {size[1]} cells; 30 x 6 are needed. q quits."
    assert sentence.replace(" ", "").startswith("".join(lines).replace(" ", "")[:5])


@settings(max_examples=30)
@given(
    st.integers(1, 120), st.integers(1, 40), st.text(max_size=60), st.text(min_size=1, max_size=30), st.integers(0, 5)
)
def test_nothing_from_outside_leaves_its_line_or_moves_the_cursor(
    width: int, height: int, text: str, camera: str, cameras: int
) -> None:
    items: list[LiveCaption | FeedEvent] = [
        caption(f"{text} {ATTACK}", f"{camera}{number}", coverage_reason=text) for number in range(cameras)
    ]
    items.append(FeedEvent(EventKind.ERROR, f"{text}{ATTACK}", camera))
    items.append(caption("", camera, status=CaptionStatus.ERROR, status_message=ATTACK + text))
    screen(state_with(*items), width, height, (ATTACK + text,))
    assert all(
        character.isprintable() for item in items if isinstance(item, LiveCaption) for character in caption_line(item)
    )


def test_what_a_terminal_gets_has_no_escape_sequence_of_a_caption() -> None:
    state = state_with(caption(f"a {ATTACK} b"))
    for colours in ("standard", None):
        out = io.StringIO()
        console = Console(file=out, width=80, height=24, force_terminal=colours is not None, color_system=colours)
        for line in render(state, size=(80, 24), now_s=0.0, now_monotonic_s=101.0):
            console.print(line)
        assert "\x1b]" not in out.getvalue()
        assert "\x1b[2J" not in out.getvalue()
        assert "\\x1b[2J" in out.getvalue()


def test_marks_are_there_without_colours() -> None:
    assert "the +dog's ?red cup" in caption_line(caption())
    assert caption_line(caption()).endswith(
        "(confidence 0.76  calibrated 0.62  coverage 0.50  support 0.25  age 85 ms  work 55 ms)"
    )
    unchecked = caption(looked_for_objects=False)
    assert "the dog's red cup" in caption_line(unchecked)


def test_texts_of_a_stranger_are_bounded() -> None:
    assert len(visible("\x1b" * 10**6)) == 200
    live = caption("x" * 10**6)
    assert len(caption_line(live)) < 500
    live = replace(
        live, caption=replace(live.caption, words=(), text="y " * 10**6, objects=live.caption.objects * 9999)
    )
    assert len(caption_line(live)) < 2000
    assert "and 19968 more" in "\n".join(screen(state_with(live), 200, 60))


def test_without_captions_the_view_says_what_it_waits_for_and_what_to_check() -> None:
    page = " ".join(" ".join(screen(ViewState(), waiting_for=("a publisher of /caption", "does it run?"))).split())
    assert "No caption yet. Waiting for: a publisher of /caption does it run?" in page


def test_pause_keeps_the_screen_and_counts_what_comes() -> None:
    state = state_with(caption("one"))
    before = screen(state)
    state.press(Key.PAUSE, 10)
    state.add(caption("two"))
    state.set_cameras(())
    paused = screen(state)
    assert "PAUSED, 1 new" in paused[0]
    assert paused[1:-1] == before[1:-1]
    state.press(Key.PAUSE, 10)
    assert any("two" in line for line in screen(state))


def test_captions_of_a_camera_that_say_the_same_are_one_line_with_their_number_and_time() -> None:
    state = ViewState()
    for second in range(9):
        state.add(caption("a cup", received_s=1.7e9 + 1.5 * second, received_monotonic_s=100.0 + second))
        state.add(caption("a floor", "rear", received_monotonic_s=99.0, looked_for_objects=second < 8))
    lines, _ = state.history(20)
    assert [(line.item.camera, line.count, line.span_s) for line in lines] == [
        ("front", 9, 12.0),
        ("rear", 8, 0.0),
        ("rear", 1, 0.0),
    ], "the marks of the nouns are part of what a line says"
    page = screen(state, 60)
    assert any("cup  x 9, 12 s" in line for line in page)
    newest = state.newest()
    assert newest is not None
    assert newest.camera == "front", "the newest caption, wherever its line is"
    state.add(FeedEvent(EventKind.GONE, "no publisher", "front"))
    state.add(caption("a cup"))
    assert [line.count for line in state.history(20)[0]] == [9, 8, 1, 1, 1], "an event begins a new line"
    narrow = screen(state, 30)
    assert any(line.rstrip().endswith("x 9, 12 s") for line in narrow)


def test_a_pause_holds_the_number_of_repetitions() -> None:
    state = state_with(caption("a cup"), caption("a cup"))
    state.press(Key.PAUSE, 10)
    state.add(caption("a cup"))
    assert [line.count for line in state.history(20)[0]] == [2]
    state.press(Key.PAUSE, 10)
    assert [line.count for line in state.history(20)[0]] == [3]


def test_the_history_keeps_no_images() -> None:
    state = state_with(caption(image=LiveImage.of_pixels(np.zeros((2, 2, 3), np.uint8))))
    newest = state.newest()
    assert newest is not None
    assert newest.image is None


def test_scrolling_back_stays_at_its_place_and_end_returns_to_the_newest() -> None:
    state = state_with(*[caption(f"number {n}") for n in range(100)])
    lines = history_lines(24, 1)
    state.press(Key.PAGE_UP, lines)
    back = [line for line in screen(state) if " number " in line][1:]
    assert f"history, {lines} newer below" in "\n".join(screen(state))
    state.add(caption("number 100"))
    assert [line for line in screen(state) if " number " in line][1:] == back
    state.press(Key.HOME, lines)
    assert any("number +0" in line for line in screen(state))
    state.press(Key.END, lines)
    assert sum("number +100" in line for line in screen(state)) == 2, "the newest caption, and its line of the history"


def test_cameras_are_chosen_by_tab_and_digits() -> None:
    state = state_with(caption("one", "front"), caption("two", "rear"))
    chosen = []
    for key in (Key.NEXT_CAMERA, Key.NEXT_CAMERA, Key.NEXT_CAMERA, Key.PREVIOUS_CAMERA, 1, 9, 0):
        state.press(key, 10)
        chosen.append(state.camera)
    assert chosen == ["front", "rear", None, "rear", "front", "front", None]
    state.press(1, 10)
    assert not any("two" in line for line in screen(state))


def test_health_drops_and_a_camera_that_is_gone_are_shown() -> None:
    statistics = LiveStatistics("front", "/front")
    statistics.health, statistics.health_message, statistics.lost = Health.ERROR, "no image on /image", 3
    state = ViewState()
    state.set_cameras((statistics.summary(101.0),))
    assert "3 lost here, error: no image" in screen(state, width=120)[2]
    statistics.is_online = False
    state.set_cameras((statistics.summary(101.0),))
    assert "GONE" in screen(state)[2]
