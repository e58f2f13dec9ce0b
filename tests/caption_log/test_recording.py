"""The captions of a feed in the log: those with a new meaning, with their pictures and places."""

import cv2
import numpy as np
import pytest

from smart_caption_ros.caption_log import CaptionLog, CaptionLogError
from smart_caption_ros.caption_log.recording import Recorder
from smart_caption_ros.imaging import ImageError
from smart_caption_ros.record import CaptionStatus, LazyImage, Pose
from tests.caption_log.rows import START_NS, caption, rows_of

START_S = START_NS / 1e9


@pytest.fixture
def log(tmp_path):
    with CaptionLog(tmp_path / "captions.db") as opened:
        yield opened


def live(text, *lemmas, **fields):
    """A caption whose nouns are its lemmas."""
    return caption(
        text, nouns=[(lemma, lemma) for lemma in lemmas], objects=["cup"], **{"received_s": START_S, **fields}
    )


def test_a_row_is_the_record_with_the_robot_and_a_small_picture(log):
    image = LazyImage.of_pixels(np.full((400, 800, 3), 90, np.uint8))
    written = live(
        "a cup by a door", "cup", "door", image=image, pose=Pose("map", (1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0))
    )
    assert Recorder(log, robot="robot7").take(written)
    (row,) = rows_of(log.path)
    assert row.values == {**written.to_json(), "robot": "robot7"}
    assert cv2.imdecode(np.frombuffer(row.picture, np.uint8), cv2.IMREAD_COLOR).shape == (160, 320, 3)


def test_only_a_new_meaning_of_each_camera_is_written_and_the_rest_is_counted(log):
    recorder = Recorder(log)
    for item in (
        live("a cup", "cup", dropped=3),
        live("the red cup", "cup"),
        live("a cup", "cup", camera="rear"),
        live("a dog", "dog"),
        live("a cup", "cup", received_s=START_S + 60),
        live("", status=CaptionStatus.NOTHING_FOUND),
        live("a horse", "horse", status=CaptionStatus.ERROR),
        live("a cat", "cat", status=CaptionStatus.LOW_CONFIDENCE),
        live("it is dark"),
        live("it is dark"),
    ):
        recorder.take(item)
    assert [(row.camera, row.text) for row in rows_of(log.path)] == [
        ("front", "a cup"),
        ("rear", "a cup"),
        ("front", "a dog"),
        ("front", "a cup"),
        ("front", "a cat"),
        ("front", "it is dark"),
    ]
    assert (recorder.written, recorder.unchanged, recorder.captions) == (6, 2, 6)
    assert (recorder.without_caption, recorder.dropped) == (2, 3)


def test_a_caption_that_flickers_is_written_once_and_again_after_a_while(log):
    recorder = Recorder(log)

    def take(text, at_s):
        return recorder.take(live(f"a {text}", text, received_s=START_S + at_s, stamp_ns=None))

    written = [at_s for at_s in np.arange(0.0, 10.0, 0.25) if take("cup" if at_s % 0.5 else "dog", at_s)]
    assert written == [0.0, 0.25]
    assert recorder.unchanged == 38
    assert take("horse", 9.8)
    assert not take("cup", 9.9)
    assert take("cup", 10.5), "what stays is written in the end"
    assert take("dog", 11.0)


def test_photographs_do_not_flicker(log):
    recorder = Recorder(log)
    said = [
        recorder.take(live(f"a {noun}", noun, stamp_ns=None, name="a.jpg")) for noun in ("cup", "dog", "cup", "cup")
    ]
    assert said == [True, True, True, False]


def test_a_broken_image_does_not_cost_the_caption_and_an_unwanted_one_is_not_decoded(log):
    def decode():
        raise ImageError("not an image")

    assert Recorder(log).take(live("a cup", "cup", image=LazyImage(decode)))
    assert rows_of(log.path)[0].picture is None
    unwanted = LazyImage(lambda: pytest.fail("decoded"))
    assert Recorder(log, picture_side_px=0).take(live("a dog", "dog", image=unwanted))


def refuse(*arguments):
    raise CaptionLogError("the log cannot be written: disk full")


def test_trouble_is_said_once_and_ends_when_a_caption_is_written_again_and_not_before(log, monkeypatch):
    said = []
    recorder = Recorder(log, on_problem=said.append)
    with monkeypatch.context() as patched:
        patched.setattr(log, "append", refuse)
        assert not recorder.take(live("a cup", "cup"))
        assert not recorder.take(live("a cup", "cup"))
    recorder.tidy()
    assert recorder.problem == "the log cannot be written: disk full", "an idle log is no log that is written"
    assert recorder.take(live("a cup", "cup"))
    assert said == [
        "the log cannot be written: disk full; captions are lost until it can",
        "the caption log is written again; 2 captions lost",
    ]
    assert (recorder.problem, recorder.failed, recorder.written) == ("", 2, 1)
