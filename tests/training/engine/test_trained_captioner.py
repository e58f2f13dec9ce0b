"""Files of trained captioners, and files that are not."""

import pytest
import torch

from tests.frames import synthetic_images
from tests.tiny_model import tiny_trained
from training.checkpoint import load_checkpoint, save_checkpoint
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError
from training.models.eight_bits import set_eight_bits


def test_a_saved_captioner_is_loaded_with_its_weights_words_and_record(tmp_path):
    trained = tiny_trained()
    trained.save(tmp_path / "best.safetensors")
    loaded = TrainedCaptioner.load(tmp_path / "best.safetensors")
    assert (loaded.family, loaded.vocabulary, loaded.record) == (trained.family, trained.vocabulary, trained.record)
    assert loaded.backbone_options == trained.backbone_options
    expected = trained.tensors()
    assert loaded.tensors().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in loaded.tensors().items())
    assert not loaded.captioner.training


def test_the_size_of_frames_is_kept_and_other_sizes_are_refused(tmp_path):
    trained = tiny_trained()
    trained.set_image_size(None)
    assert trained.backbone.spec.preprocessing.size == (224, 224)
    trained.set_image_size(96)
    trained.save(tmp_path / "best.safetensors")
    loaded = TrainedCaptioner.load(tmp_path / "best.safetensors")
    assert (loaded.backbone.spec.rows, loaded.backbone.spec.columns) == (3, 3)
    assert loaded.caption_images(synthetic_images(2, 96), 2, 6).attention.shape[-1] == 9
    with pytest.raises(CheckpointError, match=r"--image-size: .* multiple of 32, not 100"):
        trained.set_image_size(100)
    trained.backbone = None
    with pytest.raises(CheckpointError, match="takes stored features"):
        trained.set_image_size(96)


def test_a_captioner_that_was_trained_in_8_bits_computes_in_8_bits_when_it_is_loaded(tmp_path):
    trained = tiny_trained()
    set_eight_bits(trained.captioner, True)
    trained.save(tmp_path / "best.safetensors")
    loaded = TrainedCaptioner.load(tmp_path / "best.safetensors")
    assert loaded.eight_bits
    images = synthetic_images(2, 224)
    expected, found = trained.caption_images(images, 2, 6), loaded.caption_images(images, 2, 6)
    assert torch.equal(found.log_probabilities, expected.log_probabilities)


@pytest.mark.parametrize(
    ("tensors", "state", "complaint"),
    [
        ({}, {"backbone": "of_2030"}, "its vocabulary or backbone is unknown here: 'of_2030'"),
        ({"captioner.token_norm.bias": torch.zeros(33)}, {}, r"token_norm.bias has the shape \(33,\), but a smart"),
        ({"captioner.token_norm.bias": None}, {}, "lacks captioner.token_norm.bias"),
        ({"captioner.token_norm.scale": torch.zeros(3)}, {}, "has captioner.token_norm.scale, which a smart"),
        ({}, {"family": None}, "is not a trained captioner; give the best.safetensors of a run"),
        ({}, {"model": None}, "is not a trained captioner"),
        ({}, {"family": "later"}, "has a captioner of an unknown family 'later'; known are smart"),
        ({}, {"model": {"d_modle": 3}}, "has options that the family smart refuses: .*d_modle"),
    ],
)
def test_a_file_that_is_not_a_trained_captioner_is_refused_with_its_name(tmp_path, tensors, state, complaint):
    path = tmp_path / "checkpoint.safetensors"
    tiny_trained().save(path)
    saved = ({**before, **changes} for before, changes in zip(load_checkpoint(path), (tensors, state), strict=True))
    save_checkpoint(path, *({key: value for key, value in part.items() if value is not None} for part in saved))
    with pytest.raises(CheckpointError, match=complaint) as caught:
        TrainedCaptioner.load(path)
    assert str(path) in str(caught.value)
