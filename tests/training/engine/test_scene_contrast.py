"""A captioner becomes contrastive: it stays as it is, and its language model learns what it says in a kind of scene."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import tiny_trained
from training.data.photograph_inputs import visual_of_images
from training.data.scene_photographs import ScenePhotograph
from training.engine.scene_contrast import ContrastSettings, make_contrastive, without_contrast
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, DataError
from training.models.contrastive import Contrastive

SETTINGS = ContrastSettings(strength=0.4, scenes=1, other_scenes=1, epochs=150)


def photograph(number: int, *, inside: bool) -> ScenePhotograph:
    return ScenePhotograph(inside, painted(number, inside))


def painted(number: int, inside: bool) -> Callable[[int], NDArray[np.uint8]]:
    """Paint coarse noise, reddish inside and bluish elsewhere."""
    random = np.random.default_rng(number)
    coarse = random.integers(0, 60, (7, 7, 3)).astype(np.uint8)
    coarse[..., 2 if inside else 0] += 150
    return lambda size: coarse.repeat(size // 7, axis=0).repeat(size // 7, axis=1)


PHOTOGRAPHS = [photograph(number, inside=number < 4) for number in range(8)]


@pytest.fixture(scope="module")
def trained() -> TrainedCaptioner:
    return tiny_trained()


@pytest.fixture(scope="module")
def made(trained: TrainedCaptioner) -> TrainedCaptioner:
    return make_contrastive(trained, PHOTOGRAPHS, SETTINGS, 12)


def test_the_captioner_keeps_its_weights_and_scenes_inside_get_the_strength(
    trained: TrainedCaptioner, made: TrainedCaptioner
) -> None:
    assert made.family == "contrastive"
    assert isinstance(made.captioner, Contrastive)
    for name, weight in trained.captioner.state_dict().items():
        assert torch.equal(made.captioner.captioner.state_dict()[name], weight)
    assert made.captioner.scene_strengths.tolist() == pytest.approx([0.4, 0.0])
    assert made.record["contrast"]["photographs"] == [4, 4]


def test_training_goes_on_from_the_captioner_inside(trained: TrainedCaptioner, made: TrainedCaptioner) -> None:
    inside = without_contrast(made)
    assert (inside.family, inside.captioner.config) == (trained.family, trained.captioner.config)
    assert "contrast" not in inside.record
    assert without_contrast(trained) is trained


def test_the_language_model_predicts_the_mean_of_the_captioners_predictions(made: TrainedCaptioner) -> None:
    captioner, backbone = made.captioner, made.backbone
    assert isinstance(captioner, Contrastive)
    assert backbone is not None
    frames = torch.from_numpy(np.stack([each.read(224) for each in PHOTOGRAPHS[:4]]))
    words = torch.full((4, 1, 1), Vocabulary.begin_id)
    with torch.inference_mode():
        member = captioner.captioner
        said = member.decode_captions(words, member.encode(visual_of_images(backbone, frames)))
        context = torch.nn.functional.pad(words[:1], (captioner.config.context_words - 1, 0))
        predicted = captioner.language_model(context, captioner.language_model.scenes(torch.tensor([0])))
    mean, found = said[:, 0, 0].softmax(-1).mean(0), predicted[0, 0, 0].softmax(-1)
    assert (mean - found).abs().max() < 0.05


def test_the_same_seed_makes_the_same_captioner(trained: TrainedCaptioner) -> None:
    settings = ContrastSettings(scenes=2, other_scenes=1, epochs=1)
    first, second = (make_contrastive(trained, PHOTOGRAPHS, settings, 12).captioner.state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_more_scenes_than_photographs_are_reduced_to_them(trained: TrainedCaptioner) -> None:
    made = make_contrastive(trained, PHOTOGRAPHS, ContrastSettings(scenes=20, other_scenes=30, epochs=1), 12)
    assert made.captioner.config.scenes == 8  # type: ignore[attr-defined]


def test_a_contrastive_captioner_and_photographs_of_one_kind_are_refused(
    trained: TrainedCaptioner, made: TrainedCaptioner
) -> None:
    with pytest.raises(CheckpointError, match="a single captioner, not one of the family contrastive"):
        make_contrastive(made, PHOTOGRAPHS, SETTINGS, 12)
    with pytest.raises(DataError, match="inside buildings and elsewhere"):
        make_contrastive(trained, PHOTOGRAPHS[:4], SETTINGS, 12)


def test_settings_out_of_range_are_refused_with_their_names() -> None:
    with pytest.raises(ValueError, match="strength must be 0 or more, not -1"):
        ContrastSettings(strength=-1)
    with pytest.raises(ValueError, match="opening_words must be 0 or more, not -1"):
        ContrastSettings(opening_words=-1)
    with pytest.raises(ValueError, match="epochs must be at least 1, not 0"):
        ContrastSettings(epochs=0)
