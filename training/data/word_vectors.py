"""Pretrained word vectors of the words of a vocabulary, from a GloVe text file."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from smart_caption_ros.grounding import CoverageError
from smart_caption_ros.grounding.word_vectors import read_glove
from training.errors import DataError


class VocabularyVectors(NamedTuple):
    """Vectors of the V words of a vocabulary."""

    vectors: Tensor
    """(V, width) float32; zeros where the file has no vector."""
    known: Tensor
    """(V,) bool, True where the file has a vector."""


def read_vectors(path: Path, words: Sequence[str]) -> VocabularyVectors:
    """Read the vectors of words; the first of equal words in the file counts.

    Raises:
        DataError: the file is missing or malformed, or has none of the words.
    """
    places = {word: place for place, word in enumerate(words)}
    found: dict[int, np.ndarray] = {}
    try:
        for word, vector in read_glove(path):
            place = places.get(word)
            if place is not None and place not in found:
                found[place] = vector
    except CoverageError as error:
        raise DataError(str(error)) from None
    if not found:
        raise DataError(f"{path} has a vector of none of the {len(words)} words of the vocabulary")
    vectors = np.zeros((len(words), len(next(iter(found.values())))), np.float32)
    for place, vector in found.items():
        vectors[place] = vector
    known = torch.zeros(len(words), dtype=torch.bool)
    known[list(found)] = True
    return VocabularyVectors(torch.from_numpy(vectors), known)
