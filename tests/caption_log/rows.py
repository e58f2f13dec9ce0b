"""Captions for the tests of the log, and the log as a person may have it."""

import sqlite3
from dataclasses import replace

from smart_caption_ros.caption_log import LogReader
from smart_caption_ros.captioning import Caption, DetectedObject, Timing, Word
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.record import CaptionRecord, CaptionStatus, CoverageReason, Pose

START_NS = 1_790_000_000_000_000_000
START_MS = START_NS // 10**6
JPEG = b"\xff\xd8\xff\xe0 picture \xff\xd9"
BOX = (0.0, 0.0, 9.0, 9.0)


def caption(text="a red cup on a table", at_s=0.0, *, nouns=(), objects=(), **fields):
    """A caption `at_s` seconds after the first one of a test.

    Args:
        text: the caption.
        at_s: when it was seen.
        nouns: words of the text and their lemmas; the first one names the first object.
        objects: classes of objects.
        fields: of the record.
    """
    words = text.split()
    stamp_ns = START_NS + round(at_s * 1e9)
    made = Caption(
        text=text,
        words=tuple(Word(word, -0.25, BOX) for word in words),
        score=-4.25,
        confidence=0.75,
        calibrated_confidence=0.625,
        alternatives=(),
        timing=Timing(0.001, 0.02, 0.01, 0.03, 6),
        image_size=(640, 480),
        model="tiny",
        engine="fake",
        objects=tuple(DetectedObject(name, number, 0.9, BOX) for number, name in enumerate(objects)),
    )
    grounding = Grounding(
        tuple(
            GroundedNoun(word, lemma, words.index(word), 0 if objects and not number else None, 1.0)
            for number, (word, lemma) in enumerate(nouns)
        ),
        0.5, 1.0, (), (), (), 0.001,
    )  # fmt: skip
    values = {"camera": "front", "source": "/caption", "robot": "robot1", "stamp_ns": stamp_ns}
    record = CaptionRecord.of(made, grounding, coverage_reason=CoverageReason.NONE, received_s=stamp_ns / 1e9 + 0.1)
    return replace(record, **{**values, **fields})


def full(at_s=0.0):
    return caption(
        "a red cup on a table",
        at_s,
        nouns=[("cup", "cup"), ("table", "table")],
        objects=["cup", "dining table"],
        frame_id="camera_optical_frame",
        status=CaptionStatus.LOW_CONFIDENCE,
        pose=at(1.5, -2.0),
        age_at_start_s=0.25,
    )


def at(x, y, z=0.0, frame_id="map"):
    return Pose(frame_id, (x, y, z), (0.0, 0.0, 0.0, 1.0))


def rows_of(path):
    with LogReader(path) as reader:
        return list(reader.all_rows())


def texts_of(path):
    return [row.text for row in rows_of(path)]


def check_integrity(path):
    """The database, and its search index against the rows."""
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.execute("INSERT INTO caption_search(caption_search) VALUES ('integrity-check')")
    assert connection.execute("SELECT rtreecheck('place')").fetchone() == ("ok",)
    counts = [
        connection.execute(f"SELECT count(*) FROM {source}").fetchone()
        for source in ("place", "caption WHERE pose_frame IS NOT NULL")
    ]
    assert counts[0] == counts[1]
    connection.close()
