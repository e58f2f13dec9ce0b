"""What networks compute of photographs is kept."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from recipes.caption_sets.photograph_batches import (
    computed_of_photographs,
    counts_by_label,
    mean_tokens,
    object_counts,
)
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.engines import create_engine
from tests.detection.tiny_detectors import BLUE, COLOURS_BGR, GREEN, write_yolox
from training.errors import DataError
from training.vision.grids import MobileNetV2


def photographs(count: int) -> list[tuple[str, bytes]]:
    painted = (np.full((30, 40, 3), shade, np.uint8) for shade in range(count))
    return [(f"{number}.jpg", cv2.imencode(".png", image)[1].tobytes()) for number, image in enumerate(painted)]


def mean(frames: NDArray[np.uint8]) -> NDArray[np.float32]:
    return frames.mean(axis=(1, 2, 3), dtype=np.float32)


def test_each_photograph_is_computed_once(tmp_path: Path) -> None:
    batches: list[int] = []

    def counted(frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        batches.append(len(frames))
        return mean(frames)

    given = photographs(70)
    for _ in range(2):
        found = computed_of_photographs(given, 70, counted, tmp_path / "cache", "means")
        assert [float(found[f"{number}.jpg"]) for number in range(70)] == list(range(70))
    assert batches == [32, 32, 6]
    next((tmp_path / "cache").glob("*.npy")).write_bytes(b"damaged")
    computed_of_photographs(given, 70, counted, tmp_path / "cache", "means")
    assert len(batches) == 4


def test_a_file_that_is_no_image_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"broken\.jpg"):
        computed_of_photographs([("broken.jpg", b"nothing")], 1, mean, tmp_path, "means")


def test_objects_are_counted_by_class_and_score(tmp_path: Path) -> None:
    detector = Detector(write_yolox(tmp_path / "yolox.onnx"), create_engine("onnxruntime-cpu", 1), minimum_score=0.15)
    frames = np.zeros((2, 64, 64, 3), np.uint8)
    frames[0, :32, :32] = COLOURS_BGR[BLUE]
    frames[0, 32:, 32:] = np.array(COLOURS_BGR[GREEN]) * 0.4
    counts = object_counts(detector)(frames)
    assert counts.shape == (2, 80, 2)
    labels = counts_by_label(counts[0], detector.class_names)
    certain, possible = labels[BLUE]
    assert certain == possible >= 1
    assert labels[GREEN][0] == 0 < labels[GREEN][1]
    assert counts_by_label(counts[1], detector.class_names) == {}


def test_features_are_the_mean_of_the_tokens() -> None:
    backbone = MobileNetV2().eval()
    assert mean_tokens(backbone)(np.zeros((2, 224, 224, 3), np.uint8)).shape == (2, backbone.token_width)
