"""Calibrated confidence: the share of captions with the same features that is true.

A logistic regression, which ``python -m recipes.calibrated_confidence`` fits to people's labels and captions.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.json_text import finite_numbers

FEATURES = ("confidence", "supported", "contradicted", "detail")
"""Names of the features, see :func:`caption_features`."""


def caption_features(log_confidence: float, word_biases: NDArray[np.float32], detail: float) -> dict[str, float]:
    """Compute the features of a caption that the coefficients of :class:`Calibration` are multiplied with.

    Args:
        log_confidence: natural logarithm of the caption's confidence, at most 0.
        word_biases: (T,) bias of each word by the detected objects, natural logarithm; 0 for words that name no class,
            and without a guide.
        detail: :func:`smart_caption_ros.imaging.detail.detail_of` of the frame, 0 to 255.

    Returns:
        ``confidence``: ``log_confidence``. ``supported``: the lowest bias of a word that names a class if it is
        positive, else 0. ``contradicted``: the absolute value of that bias if it is negative, else 0. ``detail``:
        ln(1 + detail).
    """
    lowest = float(min(word_biases[word_biases != 0], default=0.0))
    return {
        "confidence": log_confidence,
        "supported": max(lowest, 0.0),
        "contradicted": max(-lowest, 0.0),
        "detail": math.log1p(detail),
    }


@dataclass(frozen=True)
class Calibration:
    """A logistic regression over the features of a caption, ``calibrated_confidence`` of a manifest."""

    bias: float
    weights: Mapping[str, float]
    """Coefficient of each feature; features without one have no effect."""

    @classmethod
    def from_json(cls, document: Any) -> "Calibration":
        """Read ``{"bias": number, "weights": {feature: number}}``; other keys are ignored.

        Raises:
            ValueError: a value is missing or no finite number, or a feature is unknown.
        """
        found = document if isinstance(document, dict) else {}
        weights: Any = found.get("weights")
        numbers = finite_numbers([found.get("bias"), *weights.values()]) if isinstance(weights, dict) else None
        if numbers is None:
            raise ValueError(f"must have a number bias and an object of numbers weights, not {document!r}")
        if unknown := sorted(weights.keys() - {*FEATURES}):
            raise ValueError(f"weighs {', '.join(unknown)}; the known features are {', '.join(FEATURES)}")
        return cls(numbers[0], dict(zip(weights, numbers[1:], strict=True)))

    def __call__(self, features: Mapping[str, float]) -> float:
        """Return the share of captions with these features that is true, 0 to 1."""
        logit = self.bias + sum(weight * features[name] for name, weight in self.weights.items())
        return 0.5 * (1 + math.tanh(logit / 2))  # the logistic function, which does not overflow
