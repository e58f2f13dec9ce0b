"""Captions for the tests of the page, without a model."""

import numpy as np

from smart_caption_ros.captioning import Alternative, Caption, DetectedObject, Timing, Word
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.record import CaptionRecord, CoverageReason, LazyImage

SIZE = (64, 48)
CUP, TABLE = DetectedObject("cup", 41, 0.9, (4.0, 8.0, 20.0, 24.0)), DetectedObject("table", 60, 0.5, (0, 20, 64, 48))


def picture(shade=90):
    return np.full((SIZE[1], SIZE[0], 3), shade, np.uint8)


def live_caption(text="a cup beside a lamp", camera="front", coverage=0.5, age_s=0.1, shade=90, alternative="a cup"):
    """A caption whose second word names the first of two objects and whose last word names none.

    Each word attended to a cell of its own: word N to (N, 0, N + 1, 1).
    """
    words = text.split()
    return CaptionRecord(
        camera=camera,
        source=f"/{camera}/caption",
        caption=Caption(
            text=text,
            words=tuple(Word(word, -0.25, (n, 0.0, n + 1.0, 1.0)) for n, word in enumerate(words)),
            score=-1.0,
            confidence=0.7,
            calibrated_confidence=0.625,
            alternatives=(Alternative(alternative, -2.5),),
            timing=Timing(0.001, 0.02, 0.01, 0.031, 6),
            image_size=SIZE,
            model="small",
            engine="fake",
            objects=(CUP, TABLE),
        ),
        grounding=Grounding(
            nouns=(
                GroundedNoun(
                    words[min(1, len(words) - 1)], words[min(1, len(words) - 1)], min(1, len(words) - 1), 0, 1.0
                ),
                GroundedNoun(words[-1], words[-1], len(words) - 1, None, 0.0),
            ),
            coverage=coverage,
            noun_support=0.5,
            missed_classes=("table",),
            unsupported_nouns=(words[-1],),
            out_of_vocabulary_nouns=(),
            time_s=0.001,
        ),
        coverage_reason=CoverageReason.NONE,
        age_at_start_s=age_s - 0.032,
        image=None if shade is None else LazyImage.of_pixels(picture(shade)),
    )
