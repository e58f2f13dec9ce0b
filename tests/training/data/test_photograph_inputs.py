"""Tokens of photographs: their boxes, and features that are kept in place of being computed again."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from smart_caption_ros.imaging.preprocessing import Preprocessing
from tests.training.small_flickr8k import make_data
from training.configs.schema import PhaseConfig
from training.data.flickr8k import Flickr8k
from training.data.photograph_inputs import Photographs, visual_of_images
from training.models.captioner import Visual
from training.vision.inverted_residuals import MobileNetV2

WHOLE = PhaseConfig("p", 4, 1e-4)
CROPS = replace(WHOLE, crop=0.7)
COARSE = replace(CROPS, backbone_learning_rate=1e-4, backbone_coarse_only=True)
ALL = np.arange(4)

Open = Callable[[Path], Photographs]


def open_in(root: Path, cache: Path, image_size: int = 96) -> Photographs:
    """Open four training and two dev photographs with a cache folder, as a process does."""
    dataset = Flickr8k(root / "flickr8k")
    splits = {"train": dataset.split("train")[:4], "dev": dataset.split("dev")[:2]}
    torch.manual_seed(0)
    backbone = MobileNetV2()
    # Weights at random make outputs that vanish from layer to layer.
    weights = backbone.state_dict().items()
    backbone.load_state_dict({name: tensor * (1.6 if name.endswith("weight") else 1) for name, tensor in weights})
    backbone.set_image_size(image_size, image_size)
    return Photographs(dataset, splits, backbone.eval(), {}, cache, seed=5)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture
def open_photographs(root: Path) -> Open:
    return partial(open_in, root)


def epoch_tokens(photographs: Photographs, epoch: int, images: np.ndarray = ALL) -> tuple[Tensor, int]:
    """Return the tokens of images in an epoch, and how many of them a backbone had to compute."""
    photographs.begin_epoch(epoch)
    batch = photographs.training_batch(images)
    with torch.no_grad():
        tokens = photographs.visual(batch).tokens
    return tokens, 0 if batch.frames is None else len(batch.frames)


def check_grid(visual: Visual) -> None:
    assert visual.boxes_xyxy is not None
    assert visual.boxes_xyxy.shape == (*visual.tokens.shape[:2], 4) == (2, 9, 4)
    assert visual.boxes_xyxy.dtype == torch.float32
    grid = visual.boxes_xyxy[0].reshape(3, 3, 4)
    torch.testing.assert_close(grid[1, 2], torch.tensor([2.0, 1.0, 3.0, 2.0]) / 3)
    torch.testing.assert_close(visual.boxes_xyxy[1], visual.boxes_xyxy[0])
    assert visual.tokens.dtype == torch.float32


@pytest.mark.parametrize("phase", [WHOLE, CROPS, COARSE])
def test_tokens_have_the_boxes_of_the_grid_in_every_kind_of_phase(
    open_photographs: Open, tmp_path: Path, phase: PhaseConfig
) -> None:
    photographs = open_photographs(tmp_path / "boxes")
    photographs.begin_phase(phase, "fp32")
    photographs.begin_epoch(0)
    check_grid(photographs.visual(photographs.training_batch(ALL[:2])))
    check_grid(photographs.visual(photographs.dev_batch(ALL[:2])))


@pytest.mark.parametrize("phase", [WHOLE, CROPS, COARSE])
def test_frames_of_another_size_have_another_grid_and_features_of_their_own(
    open_photographs: Open, root: Path, tmp_path: Path, phase: PhaseConfig
) -> None:
    cache = tmp_path / "sizes"
    usual, larger = open_photographs(cache), open_in(root, cache, 128)
    for photographs, cells in ((usual, 9), (larger, 16), (usual, 9)):
        photographs.begin_phase(phase, "fp32")
        for _ in range(2):  # computed, and kept where the phase keeps features
            tokens, _ = epoch_tokens(photographs, 0)
            assert tokens.shape == (4, cells, 1280)
        batch = photographs.dev_batch(ALL[:2])
        assert photographs.visual(batch).tokens.shape == (2, cells, 1280)
    assert usual.pooled_key() != larger.pooled_key()


def test_photographs_of_an_evaluation_have_the_boxes_of_the_grid(open_photographs: Open, tmp_path: Path) -> None:
    backbone = open_photographs(tmp_path / "boxes").backbone.requires_grad_(False)
    frames = torch.randint(0, 256, (2, 96, 96, 3), dtype=torch.uint8)
    visual = visual_of_images(backbone, frames)
    check_grid(visual)
    torch.testing.assert_close(visual.tokens, backbone(frames))
    backbone.set_image_size(128, 128)
    with pytest.raises(ValueError, match="frames of 96 x 96 pixels"):
        visual_of_images(backbone, frames)


def test_kept_tokens_are_the_computed_ones_rounded_to_float16(
    open_photographs: Open, root: Path, tmp_path: Path
) -> None:
    photographs = open_photographs(tmp_path / "rounded")
    photographs.begin_phase(replace(WHOLE, flip=False), "fp32")
    first, count = epoch_tokens(photographs, 0)
    again, count_again = epoch_tokens(photographs, 0)
    assert (count, count_again) == (4, 0)
    assert torch.equal(first, again)
    backbone = photographs.backbone
    dataset = Flickr8k(root / "flickr8k")
    frames = dataset.read_images(dataset.split("train")[:4], Preprocessing(96, 96))
    with torch.no_grad():
        fresh = backbone(torch.from_numpy(frames))
    assert fresh.abs().max() > 1e-3
    torch.testing.assert_close(first, fresh, atol=1e-6, rtol=1e-3)


def test_the_last_batch_can_be_computed_a_second_time(open_photographs: Open, tmp_path: Path) -> None:
    photographs = open_photographs(tmp_path / "twice")
    photographs.begin_phase(WHOLE, "fp32")
    photographs.begin_epoch(0)
    batch = photographs.training_batch(ALL)
    with torch.no_grad():
        assert torch.equal(photographs.visual(batch).tokens, photographs.visual(batch).tokens)


@pytest.mark.parametrize("phase", [WHOLE, replace(COARSE, crop=1.0), CROPS])
def test_a_resumed_epoch_has_the_same_views_whatever_is_kept(
    open_photographs: Open, tmp_path: Path, phase: PhaseConfig
) -> None:
    straight, resumed = open_photographs(tmp_path / "straight"), open_photographs(tmp_path / "resumed")
    for photographs in (straight, resumed):
        photographs.begin_phase(phase, "fp32")
    expected = [epoch_tokens(straight, epoch)[0] for epoch in range(4)]
    # The views of the first epochs are not kept here: this machine joins in the last one.
    found, count = epoch_tokens(resumed, 3)
    assert count == 4
    assert torch.equal(found, expected[3])


def test_photographs_and_their_mirror_images_are_computed_once(open_photographs: Open, tmp_path: Path) -> None:
    photographs = open_photographs(tmp_path / "mirrored")
    photographs.begin_phase(WHOLE, "fp32")
    counts = [epoch_tokens(photographs, epoch)[1] for epoch in range(12)]
    assert counts[0] == 4
    assert sum(counts) == 8
    photographs.begin_phase(replace(WHOLE, name="later"), "fp32")
    assert sum(epoch_tokens(photographs, epoch)[1] for epoch in range(6)) == 0
    photographs.begin_phase(WHOLE, "bf16")  # other numbers
    assert sum(epoch_tokens(photographs, epoch)[1] for epoch in range(12)) == 8


def test_two_processes_compute_a_part_each_and_together_the_file_of_one(open_photographs: Open, tmp_path: Path) -> None:
    processes = [open_photographs(tmp_path / "two") for _ in range(2)]
    for photographs in processes:
        photographs.begin_phase(WHOLE, "fp32")
    assert [epoch_tokens(photographs, 0, ALL[rank::2])[1] for rank, photographs in enumerate(processes)] == [2, 2]
    one = open_photographs(tmp_path / "one")
    one.begin_phase(WHOLE, "fp32")
    expected, _ = epoch_tokens(one, 0)
    for photographs in processes:
        tokens, computed_again = epoch_tokens(photographs, 0)
        assert computed_again == 0
        torch.testing.assert_close(tokens, expected, atol=1e-6, rtol=1e-3)
    sizes = [{path.name: path.stat().st_size for path in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert sizes[0] == sizes[1]


def test_an_extraction_that_was_interrupted_goes_on_where_it_was(open_photographs: Open, tmp_path: Path) -> None:
    killed = open_photographs(tmp_path / "killed")
    killed.begin_phase(WHOLE, "fp32")
    epoch_tokens(killed, 0, ALL[:3])
    resumed = open_photographs(tmp_path / "killed")
    resumed.begin_phase(WHOLE, "fp32")
    assert epoch_tokens(resumed, 0)[1] == 1


def gradients(photographs: Photographs, phase: PhaseConfig) -> dict[str, Tensor]:
    photographs.begin_phase(phase, "fp32")
    photographs.begin_epoch(0)
    batch = photographs.training_batch(ALL)
    photographs.backbone.zero_grad()
    photographs.visual(batch).tokens.square().sum().backward()
    return {name: weight.grad for name, weight in photographs.backbone.named_parameters() if weight.grad is not None}


def test_gradients_from_kept_early_features_are_those_from_photographs(open_photographs: Open, tmp_path: Path) -> None:
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


def test_early_features_are_kept_under_the_weights_that_do_not_learn(open_photographs: Open, tmp_path: Path) -> None:
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


def test_under_autocast_tokens_have_its_type_and_are_kept_exactly(open_photographs: Open, tmp_path: Path) -> None:
    photographs = open_photographs(tmp_path / "bf16")
    photographs.begin_phase(WHOLE, "fp32")
    with torch.autocast("cpu", torch.bfloat16):
        first, _ = epoch_tokens(photographs, 0)
        again, count = epoch_tokens(photographs, 0)
    assert count == 0
    assert first.dtype == again.dtype == torch.bfloat16
    assert torch.equal(first, again)
