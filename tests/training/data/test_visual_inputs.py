"""What a captioner sees: tokens of photographs, kept in place of being computed again, and stored features."""

from dataclasses import replace
from functools import partial

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.imaging.preprocessing import Preprocessing
from tests.tiny_model import tiny_smart
from tests.training.region_files import regions, write_hdf5
from tests.training.small_coco import make_coco
from training.configs.schema import ExperimentConfig, FeaturesConfig, PhaseConfig
from training.data import visual_inputs
from training.data.caption_dataset import CaptionDataset
from training.data.coco_dataset import Coco
from training.data.feature_store import FeatureStore, StoreWriter
from training.data.flickr8k import Flickr8k
from training.data.photographs import PhotographFiles
from training.data.regions import Regions, pad_regions
from training.data.stored_features import read_batch, visual_of_stored
from training.data.visual_inputs import BackboneInputs, StoredInputs, open_visual_inputs
from training.errors import DataError
from training.models import FAMILIES
from training.models.captioner import Captioner
from training.vision.inverted_residuals import MobileNetV2

WHOLE = PhaseConfig("p", 4, 1e-4)
CROPS = replace(WHOLE, crop=0.7)
COARSE = replace(CROPS, backbone_learning_rate=1e-4, backbone_coarse_only=True)
ALL = np.arange(4)


def open_in(root, cache, image_size=96):
    """Open four training and two dev photographs with a cache folder, as a process does."""
    dataset = Flickr8k().open(root)
    splits = {"train": dataset.split("train")[:4], "dev": dataset.split("dev")[:2]}
    torch.manual_seed(0)
    backbone = MobileNetV2()
    # Weights at random make outputs that vanish from layer to layer.
    weights = backbone.state_dict().items()
    backbone.load_state_dict({name: tensor * (1.6 if name.endswith("weight") else 1) for name, tensor in weights})
    backbone.set_image_size(image_size, image_size)
    return BackboneInputs(dataset, splits, backbone.eval(), {}, cache, seed=5)


@pytest.fixture
def open_photographs(data):
    return partial(open_in, data)


def epoch_tokens(photographs, epoch, images=ALL):
    """Return the tokens of images in an epoch, and how many of them a backbone had to compute."""
    photographs.begin_epoch(epoch)
    batch = photographs.training_batch(images)
    with torch.no_grad():
        tokens = photographs.visual(batch).tokens
    return tokens, 0 if batch.frames is None else len(batch.frames)


def check_grid(visual, cells):
    assert visual.boxes_xyxy.shape == (*visual.tokens.shape[:2], 4) == (2, cells, 4)
    assert visual.boxes_xyxy.dtype == torch.float32
    side = round(cells**0.5)
    grid = visual.boxes_xyxy[0].reshape(side, side, 4)
    torch.testing.assert_close(grid[1, 2], torch.tensor([2.0, 1.0, 3.0, 2.0]) / side)
    torch.testing.assert_close(visual.boxes_xyxy[1], visual.boxes_xyxy[0])
    assert visual.tokens.dtype == torch.float32


@pytest.mark.parametrize("phase", [WHOLE, CROPS, COARSE])
def test_frames_of_each_size_have_the_boxes_of_their_grid_and_features_of_their_own(
    open_photographs, data, tmp_path, phase
):
    cache = tmp_path / "sizes"
    usual, larger = open_photographs(cache), open_in(data, cache, 128)
    for photographs, cells in ((usual, 9), (larger, 16), (usual, 9)):
        photographs.begin_phase(phase, "fp32")
        for _ in range(2):  # computed, and kept where the phase keeps features
            tokens, _ = epoch_tokens(photographs, 0)
            assert tokens.shape == (4, cells, 1280)
        for batch in (photographs.dev_batch(ALL[:2]), photographs.training_batch(ALL[:2])):
            check_grid(photographs.visual(batch), cells)
    assert usual.pooled_key() != larger.pooled_key()


def test_kept_tokens_are_the_computed_ones_rounded_to_float16(open_photographs, data, tmp_path):
    photographs = open_photographs(tmp_path / "rounded")
    photographs.begin_phase(replace(WHOLE, flip=False), "fp32")
    first, count = epoch_tokens(photographs, 0)
    again, count_again = epoch_tokens(photographs, 0)
    assert (count, count_again) == (4, 0)
    assert torch.equal(first, again)
    backbone = photographs.backbone
    dataset = Flickr8k().open(data)
    frames = dataset.read_images(dataset.split("train")[:4], Preprocessing(96, 96))
    with torch.no_grad():
        fresh = backbone(torch.from_numpy(frames))
    assert fresh.abs().max() > 1e-3
    torch.testing.assert_close(first, fresh, atol=1e-6, rtol=1e-3)


def test_photographs_and_their_mirror_images_are_computed_once(open_photographs, tmp_path):
    photographs = open_photographs(tmp_path / "mirrored")
    photographs.begin_phase(WHOLE, "fp32")
    counts = [epoch_tokens(photographs, epoch)[1] for epoch in range(12)]
    assert counts[0] == 4
    assert sum(counts) == 8
    photographs.begin_phase(replace(WHOLE, name="later"), "fp32")
    assert sum(epoch_tokens(photographs, epoch)[1] for epoch in range(6)) == 0
    photographs.begin_phase(WHOLE, "bf16")  # other numbers
    assert sum(epoch_tokens(photographs, epoch)[1] for epoch in range(12)) == 8


def test_two_processes_compute_a_part_each_and_share_it(open_photographs, tmp_path):
    processes = [open_photographs(tmp_path / "two") for _ in range(2)]
    for photographs in processes:
        photographs.begin_phase(WHOLE, "fp32")
    assert [epoch_tokens(photographs, 0, ALL[rank::2])[1] for rank, photographs in enumerate(processes)] == [2, 2]
    for photographs in processes:
        photographs.flush()
    one = open_photographs(tmp_path / "one")
    one.begin_phase(WHOLE, "fp32")
    expected, _ = epoch_tokens(one, 0)
    for photographs in processes:
        tokens, computed_again = epoch_tokens(photographs, 0)
        assert computed_again == 0
        torch.testing.assert_close(tokens, expected, atol=1e-6, rtol=1e-3)


def gradients(photographs, phase):
    photographs.begin_phase(phase, "fp32")
    photographs.begin_epoch(0)
    batch = photographs.training_batch(ALL)
    photographs.backbone.zero_grad()
    photographs.visual(batch).tokens.square().sum().backward()
    return {name: weight.grad for name, weight in photographs.backbone.named_parameters() if weight.grad is not None}


def test_gradients_from_kept_early_features_are_those_from_photographs(open_photographs, tmp_path):
    kept = replace(COARSE, crop=1.0)
    all_layers = replace(kept, backbone_coarse_only=False)
    computed = gradients(open_photographs(tmp_path / "gradients"), all_layers)
    gradients(open_photographs(tmp_path / "gradients"), kept)  # computes the features that the next call reads
    photographs = open_photographs(tmp_path / "gradients")
    cached, early = gradients(photographs, kept), len(photographs.backbone.early_layers)
    late = {name for name, _ in photographs.backbone.named_parameters() if int(name.split(".")[1]) >= early}
    assert cached.keys() == late
    for name in late:
        assert computed[name].norm() > 0
        assert (computed[name] - cached[name]).norm() < 1e-2 * computed[name].norm()  # kept features are float16


def test_early_features_are_kept_under_the_weights_that_do_not_learn(open_photographs, tmp_path):
    phase = replace(COARSE, crop=1.0)
    photographs = open_photographs(tmp_path / "fingerprint")
    photographs.begin_phase(phase, "fp32")
    epoch_tokens(photographs, 0)
    with torch.no_grad():
        next(reversed([*photographs.backbone.parameters()])).add_(1)  # as a resumed run finds it
    photographs.begin_phase(phase, "fp32")
    assert epoch_tokens(photographs, 0)[1] == 0
    with torch.no_grad():
        next(photographs.backbone.parameters()).add_(1)
    photographs.begin_phase(phase, "fp32")
    assert epoch_tokens(photographs, 0)[1] == 4


def test_a_photograph_that_is_replaced_is_computed_again_and_the_others_are_not(tmp_path):
    (tmp_path / "pictures").mkdir()
    paths = {name: tmp_path / "pictures" / f"{name}.png" for name in "abcdef"}
    for shade, path in enumerate(paths.values()):
        cv2.imwrite(str(path), np.full((96, 96, 3), 30 * shade, np.uint8))
    backbone = MobileNetV2().eval()
    backbone.set_image_size(96, 96)

    def count():
        dataset = CaptionDataset({name: ["a"] for name in paths}, {}, PhotographFiles(paths))
        inputs = BackboneInputs(dataset, {"train": [*paths], "dev": ["a"]}, backbone, {}, tmp_path / "cache")
        inputs.begin_phase(replace(WHOLE, flip=False), "fp32")
        computed = epoch_tokens(inputs, 0, np.arange(6))[1]
        inputs.flush()
        return computed

    assert [count(), count()] == [6, 0]
    cv2.imwrite(str(paths["d"]), np.full((96, 96, 3), 222, np.uint8))
    assert [count(), count()] == [1, 0]


def test_features_beyond_float16_and_a_disk_without_room_are_refused(open_photographs, tmp_path, monkeypatch):
    photographs = open_photographs(tmp_path / "large")
    monkeypatch.setattr(photographs.backbone, "forward", lambda frames: torch.full((len(frames), 9, 1280), 1e5))
    photographs.begin_phase(WHOLE, "fp32")
    with pytest.raises(DataError, match=r"float16 cannot hold.*set crop of the phase below 1"):
        epoch_tokens(photographs, 0)
    full = lambda folder: type("usage", (), {"free": 10})  # noqa: E731
    monkeypatch.setattr(visual_inputs.shutil, "disk_usage", full)
    with pytest.raises(DataError, match=r"the features need 0\.\d MB, but 0\.0 MB are free there"):
        open_photographs(tmp_path / "full").begin_phase(WHOLE, "fp32")


WIDTH = 24


def regions_of(*counts, size=(640, 480), boxes=True, seed=1):
    random = np.random.default_rng(seed)
    return [
        Regions(
            random.normal(size=(count, WIDTH)).astype(np.float32),
            random.uniform(0, 1, (count, 4)).astype(np.float32) if boxes else None,
            image_size=size,
        )
        for count in counts
    ]


class NeedsBoxes(Captioner):
    needs_boxes = True


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_features_are_padded_with_their_boxes_and_a_mask_says_where(counts):
    regions = regions_of(*counts)
    batch = pad_regions(regions)
    assert batch.tokens.shape == (len(counts), max(counts), WIDTH)
    assert (batch.mask is None) == (len(set(counts)) == 1)
    assert batch.mask is None or batch.mask.tolist() == [[n < count for n in range(max(counts))] for count in counts]
    assert batch.boxes_xyxy.dtype == torch.float32
    for row, (count, found) in enumerate(zip(counts, regions, strict=True)):
        np.testing.assert_array_equal(batch.tokens[row, :count], found.features)
        np.testing.assert_array_equal(batch.boxes_xyxy[row, :count], found.boxes_xyxy)
        assert not batch.boxes_xyxy[row, count:].any()
        assert not batch.tokens[row, count:].any()


IMAGES = [(rows, boxes, size) for rows in (1, 3, 4) for boxes in (True, False) for size in ((640, 480), (100, 7), None)]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store of an image of each kind, in shards of 4 images; the ids are places in ``IMAGES``."""
    folder = tmp_path_factory.mktemp("batches") / "store"
    with StoreWriter(folder, {}, WIDTH, shard_images=4) as writer:
        for image, (rows, boxes, size) in enumerate(IMAGES):
            (found,) = regions_of(rows, seed=image)
            pixels = found.boxes_xyxy * np.array((size or (1, 1)) * 2, np.float32) if boxes else None
            writer.add(f"{image}", found.features, pixels, *(size or (None, None)))
    return FeatureStore(folder)


@given(st.lists(st.sampled_from(range(len(IMAGES))), min_size=1, max_size=12))
def test_batches_of_a_store_are_its_images_one_by_one(store, images):
    names = [f"{image}" for image in images]
    batch = read_batch(store, names)
    expected = pad_regions([store.read(name) for name in names])
    assert batch.tokens.dtype == torch.float16
    for found, wanted in zip(batch, expected, strict=True):
        if wanted is None:
            assert found is None
        else:
            assert torch.equal(found.to(wanted.dtype), wanted)


def test_features_of_another_width_than_the_captioners_are_refused_with_both_widths(store):
    message = r"stored features are 24 wide, but the visual tokens of this Smart are 40 wide"
    with pytest.raises(DataError, match=message):
        visual_of_stored(tiny_smart(token_width=40), store, ["0"])


SPLITS = {"train": ["0", "7", "13"], "dev": ["3", "14"]}


def test_batches_are_images_of_their_split_and_the_captioner_gets_float32(store):
    inputs = StoredInputs(store, SPLITS, {})
    for batch, images in (
        (inputs.training_batch(np.array([2, 0])), ["13", "0"]),
        (inputs.dev_batch(np.array([0])), ["3"]),
        (inputs.dev_batch(np.array([1])), ["14"]),
    ):
        visual = inputs.visual(batch)
        assert visual.tokens.dtype == torch.float32
        for tokens, image in zip(visual.tokens, images, strict=True):
            features = store.read(image).features
            np.testing.assert_array_equal(tokens[: len(features)], features)


def test_pooled_features_are_the_mean_of_an_images_regions(store):
    inputs = StoredInputs(store, SPLITS, {})
    pooled = inputs.pooled(np.array([2, 0]))
    expected = [store.read(image).features.astype(np.float32).mean(axis=0) for image in ("13", "0")]
    np.testing.assert_allclose(pooled, expected, rtol=1e-5)
    assert inputs.pooled_key() == StoredInputs(store, SPLITS, {}).pooled_key()
    others = {**SPLITS, "train": ["0", "7", "3"]}
    assert inputs.pooled_key() != StoredInputs(store, others, {}).pooled_key()


def test_a_file_without_the_boxes_that_the_family_needs_is_refused_before_training(tmp_path, monkeypatch):
    monkeypatch.setitem(FAMILIES, "needs_boxes", NeedsBoxes)
    data = make_coco(tmp_path)
    dataset = Coco(karpathy="coco/dataset_coco.json").open(data)
    splits = {split: dataset.split(split) for split in ("train", "dev")}
    images = [image for split in splits.values() for image in split]
    (tmp_path / "boxless").mkdir()
    path = write_hdf5(tmp_path / "boxless", {image: regions(3) for image in images}, None)

    def opened(family):
        features = FeaturesConfig(hdf5=str(path), width=16)
        config = ExperimentConfig("small", [PhaseConfig("xe", 1, 1e-3)], family=family, features=features)
        return open_visual_inputs(config, data, dataset, splits, data / "cache")

    with pytest.raises(DataError, match=rf"image {images[0]} have no boxes.*NeedsBoxes needs boxes; add them"):
        opened("needs_boxes")
    assert opened("smart").dev_batch(np.arange(2)).boxes_xyxy is None
