"""The visual inputs of an experiment: boxes of every source, and families that need them."""

from pathlib import Path

import numpy as np
import pytest

from tests.training.region_files import SIZE, regions, write_hdf5
from tests.training.small_coco import FORMATS, features_config, make_coco
from training.configs.schema import ExperimentConfig, FeaturesConfig, PhaseConfig
from training.data.coco_dataset import CocoDataset, CocoOptions
from training.data.visual_batches import VisualInputs
from training.data.visual_inputs import open_visual_inputs
from training.errors import DataError
from training.models import FAMILIES
from training.models.captioner import Captioner


class NeedsBoxes(Captioner):
    needs_boxes = True


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_coco(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def families(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "needs_boxes", NeedsBoxes)


def inputs(data: Path, family: str, **source: object) -> VisualInputs:
    config = ExperimentConfig("small", [PhaseConfig("xe", 1, 1e-3)], family=family, **source)  # type: ignore[arg-type]
    dataset = CocoDataset.open(data, CocoOptions(karpathy="coco/dataset_coco.json"))
    splits = {split: dataset.split(split) for split in ("train", "dev")}
    return open_visual_inputs(config, data, dataset, splits, data / "cache")


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_boxes(data: Path, kind: str) -> None:
    opened = inputs(data, "needs_boxes", features=FeaturesConfig(**features_config(kind)))  # type: ignore[arg-type]
    size = (320, 240) if kind == "store" else SIZE
    training = opened.training_batch(np.arange(3))
    for batch in (training, opened.dev_batch(np.arange(3))):
        visual = opened.visual(batch)
        assert visual.boxes_xyxy is not None
        assert visual.boxes_xyxy.shape == (*visual.tokens.shape[:2], 4)
        assert 0 < visual.boxes_xyxy.max() <= 200 / size[1]


def test_a_file_without_the_boxes_that_the_family_needs_is_refused_before_training(data: Path, tmp_path: Path) -> None:
    dataset = CocoDataset.open(data, CocoOptions(karpathy="coco/dataset_coco.json"))
    images = [image for split in ("train", "dev") for image in dataset.split(split)]
    path = write_hdf5(tmp_path, {image: regions(3) for image in images}, None)
    features = FeaturesConfig(hdf5=str(path), width=16)
    with pytest.raises(DataError, match=rf"image {images[0]} have no boxes.*NeedsBoxes needs boxes; add them"):
        inputs(data, "needs_boxes", features=features)
    assert inputs(data, "smart", features=features).dev_batch(np.arange(2)).boxes_xyxy is None
