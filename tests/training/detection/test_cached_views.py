"""Maps from the disk are those of the backbone, of the views that the boxes are of."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.training.detection.boxes_of_drawings import CLASSES, write_labels
from training.backbones import load_backbone
from training.data.flickr8k import Flickr8k
from training.detection.cached_views import CachedViews
from training.detection.labels import Labels, read_labels
from training.engine import Engine
from training.models.mobilenet_v2 import MobileNetV2


@pytest.fixture(scope="module")
def backbone(data: Path) -> MobileNetV2:
    return load_backbone(next((data / "backbones").iterdir())).eval()


@pytest.fixture(scope="module")
def labels(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Labels:
    file = write_labels(tmp_path_factory.mktemp("labels") / "drawings.jsonl", data)
    return read_labels([str(file)], file.parent, tuple(CLASSES.values()))


def views_of(path: Path, data: Path, labels: Labels, backbone: MobileNetV2, count: int, crop: float) -> CachedViews:
    dataset = Flickr8k(data / "flickr8k")
    views = CachedViews(path, dataset.split("train"), labels, count)
    views.fill(dataset, backbone, Engine(torch.device("cpu"), "fp32"), crop, seed=1)
    return views


def test_whole_photographs_have_the_backbones_maps_to_half_a_step(
    data: Path, labels: Labels, backbone: MobileNetV2, tmp_path: Path
) -> None:
    views = views_of(tmp_path / "head", data, labels, backbone, 1, crop=1.0)
    dataset = Flickr8k(data / "flickr8k")
    images = dataset.split("train")
    levels, targets = views.read(np.arange(len(images)), np.zeros(len(images), np.int64))
    assert targets.scores.shape[0] == len(images)
    mirrored = 0
    for index, image in enumerate(images):
        frame = dataset.read_images([image])
        own = torch.from_numpy(labels.boxes[image].xyxy)
        flip = not torch.allclose(targets.boxes_xyxy[index, : len(own)], own, atol=1e-4)
        mirrored += flip
        with torch.inference_mode():
            expected = backbone.pyramid(torch.from_numpy(frame[:, :, ::-1].copy() if flip else frame)).levels
        for found, wanted in zip(levels, expected, strict=True):
            torch.testing.assert_close(found[index], wanted[0], atol=6 / 255 / 2 + 1e-4, rtol=0)
    assert 0 < mirrored < len(images)


def test_boxes_are_those_of_the_view(data: Path, labels: Labels, backbone: MobileNetV2, tmp_path: Path) -> None:
    views = views_of(tmp_path / "head", data, labels, backbone, 3, crop=0.5)
    first, other = (views.read(np.array([0]), np.array([view]))[1].boxes_xyxy for view in (0, 1))
    assert first.shape != other.shape or not torch.allclose(first, other)


def test_what_is_there_is_not_computed_again_and_is_removed_in_the_end(
    data: Path, labels: Labels, backbone: MobileNetV2, tmp_path: Path
) -> None:
    one = views_of(tmp_path / "head", data, labels, backbone, 2, crop=0.5)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert len(before) == 2
    two = views_of(tmp_path / "head", data, labels, backbone, 2, crop=0.5)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    for a, b in zip(one.read(np.array([3]), np.array([1]))[0], two.read(np.array([3]), np.array([1]))[0], strict=True):
        assert torch.equal(a, b)
    two.remove()
    assert not list(tmp_path.iterdir())
