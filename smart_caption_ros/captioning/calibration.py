"""Calibrated confidence: what share of the captions with the same features is true.

A logistic regression, which ``python -m recipes.calibrated_confidence`` fits to people's labels and captions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEATURES = ("confidence", "supported", "contradicted", "detail")
"""Names of the features, see :func:`caption_features`."""


def caption_features(log_confidence: float, word_biases: NDArray[np.float32], detail: float) -> dict[str, float]:
    """Compute the features of a caption.

    A caption is as well supported as the word that the detected objects support least, of those that name a class.

    Args:
        log_confidence: natural logarithm of the caption's confidence, at most 0.
        word_biases: (T,) what the objects guide raises or lowers each word by, natural logarithm; 0 for words that it
            leaves alone, and without a guide.
        detail: :func:`smart_caption_ros.imaging.detail.detail_of` of the frame, 0 to 255.

    Returns:
        By name: ``confidence``, the logarithm; ``supported`` and ``contradicted``, what the lowest bias that is not 0
        raises or lowers its word by, both 0 or more; ``detail``, ln(1 + detail).
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
    """A logistic regression over the features of a caption; a manifest has its fields as ``calibrated_confidence``."""

    bias: float
    weights: Mapping[str, float]
    """By name of the feature; 0 for those that are missing."""

    @classmethod
    def from_json(cls, document: Any) -> Calibration:
        """Read ``{"bias": number, "weights": {feature: number}}``; other keys are ignored.

        Raises:
            ValueError: a value is missing or no finite number, or a feature is unknown.
        """
        found = document if isinstance(document, dict) else {}
        bias: Any = found.get("bias")
        weights: Any = found.get("weights")
        numbers: list[Any] = [bias, *weights.values()] if isinstance(weights, dict) else [None]
        if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
            raise ValueError(f"must have a number bias and an object of numbers weights, not {document!r}")
        if unknown := sorted(weights.keys() - {*FEATURES}):
            raise ValueError(f"weighs {', '.join(unknown)}; the known features are {', '.join(FEATURES)}")
        return cls(float(bias), {name: float(weight) for name, weight in weights.items()})

    def __call__(self, features: Mapping[str, float]) -> float:
        """Return the share of captions with these features that is true, 0 to 1."""
        logit = self.bias + sum(weight * features[name] for name, weight in self.weights.items())
        return 0.5 * (1 + math.tanh(logit / 2))  # the logistic function, which does not overflow
