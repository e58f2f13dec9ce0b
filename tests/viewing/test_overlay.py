"""The overlay keeps the frame outside of boxes and labels, and shows the caption with its evidence."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import join_words
from smart_caption_ros.viewing import draw_overlay
from smart_caption_ros.viewing import text as text_drawing

Box = tuple[float, float, float, float]


def caption(words, objects=None, **fields):
    """A caption of (text, probability, box) words and (class, score, box) objects."""
    log_probabilities = [math.log(probability) for _, probability, _ in words]
    score = sum(log_probabilities)
    standard = {
        "text": join_words([text for text, _, _ in words]),
        "words": tuple(
            SimpleNamespace(text=text, log_probability=log_probability, box_xyxy=box)
            for (text, _, box), log_probability in zip(words, log_probabilities, strict=True)
        ),
        "score": score,
        "confidence": math.exp(score / max(1, len(words))),
        "calibrated_confidence": None,
        "objects": tuple(
            SimpleNamespace(class_name=name, class_id=0, score=score, box_xyxy=box)
            for name, score, box in objects or []
        ),
        "timing": SimpleNamespace(total_s=0.042),
        "model": "test-model",
        "engine": "test engine",
    }
    return SimpleNamespace(**{**standard, **fields})


def noise(height, width):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def dog_on_grass(width, height, **fields):
    left = (0.1 * width, 0.4 * height, 0.3 * width, 0.6 * height)
    right = (0.6 * width, 0.7 * height, 0.9 * width, 0.9 * height)
    return caption([("a", 0.9, left), ("dog", 0.8, left), ("on", 0.5, right), ("grass", 0.1, right)], **fields)


def strip_of(overlay, image_bgr):
    return overlay[image_bgr.shape[0] :]


def differing(overlay, image_bgr):
    """HxW: where the frame was drawn upon."""
    height, width = image_bgr.shape[:2]
    return (overlay[:height, :width] != image_bgr).any(axis=2)


def test_the_frame_is_untouched_but_for_the_boxes_and_their_labels():
    image_bgr = noise(480, 640)
    before = image_bgr.copy()
    overlay = draw_overlay(image_bgr, dog_on_grass(640, 480))
    np.testing.assert_array_equal(image_bgr, before)
    drawn = differing(overlay, image_bgr)
    near_boxes = np.zeros_like(drawn)
    near_boxes[192 - 30 : 288 + 30, 64:192] = True
    near_boxes[336 - 30 : 432 + 30, 384:576] = True
    assert drawn.any()
    assert not drawn[~near_boxes].any()
    assert not drawn[200:280, 72:184].any()  # the inside of the dog's box


def grounding(*nouns, coverage=0.5):
    """Nouns of (text, word index, object index)."""
    return SimpleNamespace(
        nouns=tuple(SimpleNamespace(text=t, word_index=w, object_index=o) for t, w, o in nouns), coverage=coverage
    )


def sentence(*objects):
    whole = (0, 0, 9, 9)
    return caption([(word, 1.0, whole) for word in ["a", "dog", "near", "a", "dining", "table"]], list(objects))


def colourful(pixels):
    return np.asarray(pixels.max(axis=-1).astype(int) - pixels.min(axis=-1) > 60)


def test_a_named_object_is_framed_in_the_colour_in_which_its_noun_is_underlined():
    image_bgr = np.zeros((480, 640, 3), np.uint8)
    spoken = sentence(("dining table", 0.9, (300, 100, 600, 400)), ("dog", 0.8, (50, 200, 200, 400)))
    overlay = draw_overlay(image_bgr, spoken, None, grounding(("dog", 1, 1), ("dining table", 4, 0)))
    dog, table = overlay[300, 51], overlay[250, 301]
    assert colourful(dog)
    assert colourful(table)
    assert (dog != table).any()
    lines = {}
    for name, colour in (("dog", dog), ("table", table)):
        rows = (strip_of(overlay, image_bgr) == colour).all(axis=2)
        lines[name] = rows.sum(axis=1).max()
        assert lines[name] > 20, "a line under the word"
    assert lines["table"] > 2 * lines["dog"], "one line under both words"


def test_all_objects_of_a_named_class_have_its_colour_and_the_others_are_grey():
    image_bgr = np.zeros((480, 640, 3), np.uint8)
    spoken = sentence(
        ("dog", 0.9, (50, 100, 150, 200)), ("dog", 0.5, (250, 100, 350, 200)), ("oven", 0.9, (450, 100, 550, 200))
    )
    overlay = draw_overlay(image_bgr, spoken, None, grounding(("dog", 1, 0)))
    assert (overlay[150, 51] == overlay[150, 251]).all()
    assert colourful(overlay[150, 51])
    assert overlay[150, 451].min() > 80
    assert not colourful(overlay[60:300, 400:600]).any()


def test_a_very_long_caption_is_wrapped_and_then_cut():
    image_bgr = noise(224, 224)
    box = (0, 0, 32, 32)
    heights = [draw_overlay(image_bgr, caption([("in", 0.5, box)] * count)).shape[0] for count in (1, 30, 300, 3000)]
    assert heights[0] < heights[1] < heights[2] == heights[3]


MANY = [("dog" if i % 2 else "oven", i / 500, (i, i % 400, i + 40.0, i % 400 + 50.0)) for i in range(500)]


@pytest.mark.parametrize(
    "spoken",
    [
        caption([("café", 0.5, (0, 0, 9, 9))]),
        caption([("donaudampfschiff" * 20, 0.5, (0, 0, 50, 50))]),
        sentence(*MANY),
    ],
    ids=["letters that the font lacks", "a word wider than the frame", "five hundred objects"],
)
def test_whatever_a_caption_holds_the_overlay_is_as_wide_as_the_frame(spoken):
    overlay = draw_overlay(noise(240, 320), spoken, "厨房\n\tkamera\x00", grounding(("dog", 1, 1)))
    assert overlay.shape[1] == 320


def test_only_the_visible_part_of_a_text_is_measured(monkeypatch):
    """Any node may publish texts of megabytes, which `smart-caption serve` draws."""
    endless, box, measured = "donaudampfschiff" * 1_000, (0, 0, 50, 50), []
    width_of = text_drawing.width_of
    monkeypatch.setattr(text_drawing, "width_of", lambda text, size: measured.append(text) or width_of(text, size))
    draw_overlay(noise(240, 320), caption([(endless, 0.5, box)], [(endless, 0.5, box)], model=endless), endless)
    assert max(map(len, measured)) < 1000


@pytest.mark.parametrize(
    "box",
    [
        (-50.0, -50.0, 1000.0, 1000.0),
        (50.0, 50.0, 50.0, 50.0),
        (90.0, 90.0, 10.0, 10.0),
        (math.nan, 0.0, 10.0, 10.0),
        (0.0, 0.0, math.inf, 10.0),
        (400.0, 400.0, 500.0, 500.0),
    ],
)
def test_boxes_that_leave_the_frame_or_are_none_do_no_harm(box):
    image_bgr = noise(120, 160)
    overlay = draw_overlay(image_bgr, caption([("dog", 0.5, box)], [("dog", 0.5, box)]))
    assert overlay.shape[1:] == (200, 3)


@settings(max_examples=40, deadline=None)
@given(height=st.integers(1, 300), width=st.integers(1, 300), count=st.integers(0, 12))
def test_any_size_of_frame_gives_an_overlay_that_begins_with_the_frame(height, width, count):
    image_bgr = noise(height, width)
    box = (0.0, 0.0, width / 7, height / 7)
    overlay = draw_overlay(image_bgr, caption([("of", 0.3, box)] * count), "frame")
    np.testing.assert_array_equal(overlay[:height, :width], image_bgr)
