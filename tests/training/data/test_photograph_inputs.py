"""Visual inputs of photographs have the boxes of the grid's cells."""

import numpy as np
import pytest
import torch

from tests.training.small_flickr8k import make_data
from training.configs.schema import PhaseConfig
from training.data.flickr8k import Flickr8k
from training.data.photograph_inputs import Photographs, visual_of_images
from training.models.captioner import Visual
from training.vision.mobilenet_v2 import MobileNetV2


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Photographs:
    root = tmp_path_factory.mktemp("data")
    dataset = Flickr8k(make_data(root) / "flickr8k")
    splits = {split: dataset.split(split)[:2] for split in ("train", "dev")}
    torch.manual_seed(0)
    return Photographs(dataset, splits, MobileNetV2().eval(), {}, root / "cache")


def check_grid(visual: Visual) -> None:
    assert visual.boxes_xyxy is not None
    assert visual.boxes_xyxy.shape == (*visual.tokens.shape[:2], 4) == (2, 49, 4)
    assert visual.boxes_xyxy.dtype == torch.float32
    grid = visual.boxes_xyxy[0].reshape(7, 7, 4)
    torch.testing.assert_close(grid[2, 5], torch.tensor([5.0, 2.0, 6.0, 3.0]) / 7)
    torch.testing.assert_close(visual.boxes_xyxy[1], visual.boxes_xyxy[0])
    assert visual.image_size is None


@pytest.mark.parametrize("crop", [1.0, 0.8])
def test_cached_features_and_random_views_have_the_boxes_of_the_grid(photographs: Photographs, crop: float) -> None:
    photographs.begin_phase(PhaseConfig("p", 1, 1e-4, crop=crop))
    photographs.begin_epoch(np.random.default_rng(0))
    check_grid(photographs.visual(photographs.training_batch(np.arange(2), np.random.default_rng(1))))
    check_grid(photographs.visual(photographs.dev_batch(np.arange(2))))


def test_photographs_of_an_evaluation_have_the_boxes_of_the_grid(photographs: Photographs) -> None:
    frames = torch.randint(0, 256, (2, 224, 224, 3), dtype=torch.uint8)
    visual = visual_of_images(photographs.backbone, frames)
    check_grid(visual)
    torch.testing.assert_close(visual.tokens, photographs.backbone(frames))
