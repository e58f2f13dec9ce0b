"""A fake captioner with predictable captions: it names the shade of grey of a frame."""

import math
import time
from collections import defaultdict
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.optimize  # noqa: F401  (slow to import: not at the first caption, as of NounCoverage.load)

from smart_caption_ros.captioning import Alternative, Caption, DetectedObject, EngineError, Timing, Word
from smart_caption_ros.captioning.captioner import NO_DETECTOR
from smart_caption_ros.grounding import Noun, NounCoverage

NOTHING_TO_SAY = 0
BREAKS_COVERAGE = 44
UNSURE = 50
BREAKS_THE_ENGINE = 66


class FakeCaptioner:
    def __init__(self, path=None, engine="auto", threads=None, detector=None, minimum_score=None, *, delay_s=0.0):
        self.model = "fake model"
        self.engine = f"fake engine ({engine}, {threads} threads)"
        self.engine_choice = f"{self.engine}; there is no other"
        self.engine_fallbacks = ()
        self.bundle = SimpleNamespace(path=path or Path("fake_bundle"), can_be_guided=False)
        self.detector = (
            SimpleNamespace(path=detector, layout="fake layout", class_names=("wall",))
            if detector and detector != Path(NO_DETECTOR)
            else None
        )
        self.detector_argument = detector
        self.minimum_score = minimum_score
        self.delay_s = delay_s
        self.shades = []

    def warm_up(self):
        """Do nothing."""

    def caption(self, image_bgr):
        """Return "shade <mean value>" after the delay; the constants above are shades with special results."""
        shade = round(float(image_bgr.mean()))
        self.shades.append(shade)
        time.sleep(self.delay_s)
        if shade == BREAKS_THE_ENGINE:
            raise EngineError("the engine has burnt out")
        caption = shade_caption(shade, image_bgr.shape[1], image_bgr.shape[0], self.model, self.engine)
        return caption if self.detector else replace(caption, objects=())


class FakeCoverage(NounCoverage):
    """Takes every word for a noun, and only equal words for similar ones."""

    def __init__(self):
        places = defaultdict(count().__next__)
        vectors = SimpleNamespace(
            dimension=1000, mean=lambda words: np.eye(1, 1000, places[" ".join(words)], np.float32)[0]
        )
        super().__init__(SimpleNamespace(nouns=self._nouns), vectors)

    @staticmethod
    def _nouns(caption):
        """Return all words as nouns; raise an exception for the shade BREAKS_COVERAGE."""
        words = caption.split()
        if str(BREAKS_COVERAGE) in words:
            raise RuntimeError("the dictionary is on fire")
        return [Noun(word, word, place, caption.index(word), 0) for place, word in enumerate(words)]


def shade_caption(shade, width, height, model="m", engine="e"):
    """Return the caption of a frame of one shade."""
    texts = [] if shade == NOTHING_TO_SAY else ["shade", str(shade)]
    log_probability = math.log(0.1 if shade == UNSURE else 0.8)
    score = log_probability * (len(texts) + 1)
    return Caption(
        text=" ".join(texts),
        words=tuple(Word(text, log_probability, (0.0, 0.0, width / 2, height / 2)) for text in texts),
        score=score,
        confidence=math.exp(log_probability),
        calibrated_confidence=math.exp(log_probability) if texts else None,
        alternatives=(Alternative("another shade", score - 1),),
        timing=Timing(preprocess_s=0.001, vision_s=0.002, decode_s=0.003, total_s=0.006, steps=3),
        image_size=(width, height),
        model=model,
        engine=engine,
        objects=(DetectedObject("wall", 7, 0.5, (1.0, 2.0, 3.0, 4.0)),),
    )


def painted(shade, width=64, height=48):
    """Return a frame of one shade, uint8 (H, W, 3)."""
    return np.full((height, width, 3), shade, np.uint8)


def image_fields(shade, **changes):
    from smart_caption_ros.imaging.image_messages import encode_image

    return {**encode_image(painted(shade)), **changes}
