"""The calibrated confidence: its features and its logistic regression."""

import math

import numpy as np
import pytest

from smart_caption_ros.captioning.calibration import FEATURES, Calibration, caption_features


@pytest.mark.parametrize(
    ("word_biases", "supported", "contradicted"),
    [([0.0, 1.5, 0.0, 0.5], 0.5, 0.0), ([0.0, 1.5, -0.25, -0.75], 0.0, 0.75), ([0.0, 0.0], 0.0, 0.0), ([], 0.0, 0.0)],
)
def test_the_word_that_objects_support_least_counts(word_biases, supported, contradicted):
    features = caption_features(-0.5, np.array(word_biases, np.float32), 9.0)
    assert tuple(features) == FEATURES
    assert features == {
        "confidence": -0.5, "supported": supported, "contradicted": contradicted, "detail": math.log(10),
    }  # fmt: skip


def test_missing_weights_are_0_and_extreme_features_give_0_and_1():
    calibration = Calibration.from_json({"bias": 1, "weights": {"confidence": 2.0}})
    features = dict.fromkeys(FEATURES, 0.0)
    assert calibration(features) == pytest.approx(1 / (1 + math.exp(-1)))
    assert calibration({**features, "detail": 99.0}) == calibration(features)
    assert [calibration({**features, "confidence": value}) for value in (-1e9, 1e9)] == [0, 1]
