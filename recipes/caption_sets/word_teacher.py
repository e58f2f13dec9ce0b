"""Words that people would use for a photograph, estimated from its features and its labels.

Labels name objects; captions also name places and actions ("a man riding a wave on a surfboard"). A ridge regression
from ImageNet features of photographs with people's captions tells how many of a photograph's captions have a word.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

MIN_PHOTOGRAPHS = 12
"""Photographs whose captions must have a word that the teacher learns."""
PRECISION = 0.65
"""Share of the photographs with a word's least estimate, or a higher one, at least one of whose captions has the word.
People do not name all that they see, so more photographs show it."""
DEFAULT_ESTIMATE = 0.25
"""Least estimate of a word that too few photographs have to measure its own."""
_ESTIMATES = np.arange(0.1, 0.65, 0.05)
_MIN_MEASURED = 8
_FOLDS, _RIDGE = 5, 3.0
_LABEL_WEIGHT = 0.15
"""Value of a label beside the features of a photograph, whose length is about 1."""
_CAPTIONS = 5
"""Least number of captions of a photograph that precision is measured on."""


@dataclass(frozen=True)
class Example:
    """A photograph with people's captions."""

    features: NDArray[np.float32]
    """(D,) float32."""
    labels: Collection[str]
    captions: Sequence[Sequence[str]]
    """Words of each caption."""


class WordTeacher:
    """Estimates for each word what share of a photograph's captions have it."""

    def __init__(self, examples: Sequence[Example]) -> None:
        """Learn from photographs with captions, and measure from which estimate on each word can be relied on."""
        features = np.stack([example.features for example in examples])
        self._mean, self._scale = features.mean(axis=0), features.std(axis=0) + 1e-6
        self._labels = {
            name: place for place, name in enumerate(sorted({name for example in examples for name in example.labels}))
        }
        counts = Counter(word for example in examples for word in set(chain.from_iterable(example.captions)))
        self.words = sorted(word for word, count in counts.items() if count >= MIN_PHOTOGRAPHS)
        places = {word: place for place, word in enumerate(self.words)}
        shares = np.zeros((len(examples), len(self.words)), np.float32)
        for row, example in enumerate(examples):
            for words in example.captions:
                for word in set(words) & places.keys():
                    shares[row, places[word]] += 1 / len(example.captions)
        inputs = self._inputs(features, [example.labels for example in examples])
        self._prior, self._weights = _fit(inputs, shares)
        several = np.array([len(example.captions) >= _CAPTIONS for example in examples])
        self.least = _least_estimates(_cross_validated(inputs, shares)[several], shares[several] > 0)
        """(words,) float32, the estimate from which on a word can be relied on; infinite where none is high enough."""

    def confirmed_words(self, features: NDArray[np.float32], labels: Collection[str]) -> dict[str, float]:
        """Return the words that can be relied on for a photograph, with the estimated share of captions with them.

        Args:
            features: (D,) float32.
            labels: names of objects in the photograph.
        """
        estimates = (self._inputs(features[None], [labels]) @ self._weights + self._prior)[0]
        return {self.words[place]: float(estimates[place]) for place in np.flatnonzero(estimates >= self.least)}

    def _inputs(self, features: NDArray[np.float32], labels: Sequence[Collection[str]]) -> NDArray[np.float32]:
        named = np.zeros((len(features), len(self._labels)), np.float32)
        for row, names in enumerate(labels):
            named[row, [self._labels[name] for name in names if name in self._labels]] = _LABEL_WEIGHT
        scaled = (features - self._mean) / self._scale / features.shape[1] ** 0.5
        return np.hstack([scaled, named])


def _fit(inputs: NDArray[np.float32], shares: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Solve the ridge regression; mean of the shares (words,) and weights (inputs, words)."""
    prior = shares.mean(axis=0)
    gram = inputs.T @ inputs + _RIDGE * np.eye(inputs.shape[1], dtype=np.float32)
    return prior, np.linalg.solve(gram, inputs.T @ (shares - prior))


def _cross_validated(inputs: NDArray[np.float32], shares: NDArray[np.float32]) -> NDArray[np.float32]:
    """Estimate the shares of each photograph by a regression on the others, (photographs, words)."""
    folds = np.random.default_rng(0).integers(_FOLDS, size=len(inputs))
    estimates = np.zeros_like(shares)
    for fold in range(_FOLDS):
        prior, weights = _fit(inputs[folds != fold], shares[folds != fold])
        estimates[folds == fold] = inputs[folds == fold] @ weights + prior
    return estimates


def _least_estimates(estimates: NDArray[np.float32], present: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Find the lowest estimate at which each word has the required precision, (words,) float32."""
    least = np.full(present.shape[1], np.inf, np.float32)
    for word in range(present.shape[1]):
        above = [(value, present[estimates[:, word] >= value, word]) for value in _ESTIMATES]
        measured = [(value, found.mean()) for value, found in above if len(found) >= _MIN_MEASURED]
        precise = [value for value, precision in measured if precision >= PRECISION]
        if precise:
            least[word] = precise[0]
        elif not measured or measured[-1][0] < DEFAULT_ESTIMATE:
            least[word] = DEFAULT_ESTIMATE
    return least
