"""Words that a vocabulary must have, and pretrained vectors of its words from a GloVe text file.

`objects_guide` (docs/objects.md) can raise a class's words only where the vocabulary has them, however rare they are in
captions.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from smart_caption_ros.grounding import CoverageError
from smart_caption_ros.grounding.word_vectors import read_glove
from training.errors import DataError
from training.vision.yolox import DETECTION_CLASSES

PATH = Path(__file__).resolve().parent / "class_word_forms.txt"
"""Words of each class, made by `recipes/lexicon` of commit 8c43a21."""

DETECTOR = "detector"
"""Value of ``required_words`` in an experiment: the words of :data:`DETECTION_CLASSES`."""


def words_of_detector() -> frozenset[str]:
    """Return the words that people use for the classes of a captioner's detector."""
    lines = [line for line in PATH.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    words = dict(line.split(": ") for line in lines)
    return frozenset(word for name in DETECTION_CLASSES for word in words[name].split())


def read_vectors(path: Path, words: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Read the vectors of V words; the first of equal words in the file counts.

    Returns:
        (V, width) float32, zeros where the file has no vector; and (V,) bool, where it has one.

    Raises:
        DataError: the file is missing or malformed, or has none of the words.
    """
    places = {word: place for place, word in enumerate(words)}
    known_vectors: dict[int, np.ndarray] = {}
    try:
        for word, vector in read_glove(path):
            place = places.get(word)
            if place is not None and place not in known_vectors:
                known_vectors[place] = vector
    except CoverageError as error:
        raise DataError(str(error)) from None
    if not known_vectors:
        raise DataError(f"{path} has a vector of none of the {len(words)} words of the vocabulary")
    vectors = np.zeros((len(words), len(next(iter(known_vectors.values())))), np.float32)
    for place, vector in known_vectors.items():
        vectors[place] = vector
    known = torch.zeros(len(words), dtype=torch.bool)
    known[list(known_vectors)] = True
    return torch.from_numpy(vectors), known
