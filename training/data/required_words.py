"""Words that a captioner's vocabulary has, however rare they are in its captions: those of its detector's classes.

`objects_guide` (docs/objects.md) can raise a class's words only where the vocabulary has them.
"""

from pathlib import Path

from training.vision.detection_classes import DETECTION_CLASSES

PATH = Path(__file__).resolve().parent / "class_word_forms.txt"
"""Made by :mod:`recipes.lexicon.class_word_forms`."""

DETECTOR = "detector"
"""Value of ``required_words`` in an experiment: the words of :data:`DETECTION_CLASSES`."""


def words_of_detector() -> frozenset[str]:
    """Return the words that people use for the classes of a captioner's detector."""
    lines = [line for line in PATH.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    words = dict(line.split(": ") for line in lines)
    return frozenset(word for name in DETECTION_CLASSES for word in words[name].split())
