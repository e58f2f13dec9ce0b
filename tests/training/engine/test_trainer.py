"""Phases of a run: their first weights, features, averages and ends."""

from pathlib import Path

import numpy as np
import pytest
import torch

from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.files import OutputError
from smart_caption_ros.imaging.preprocessing import Preprocessing
from tests.training.small_flickr8k import save_convolutions
from tests.training.small_runs import new_trainer, trained
from training.data.flickr8k import Flickr8k
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, ConfigError
from training.vision.released_weights import load_backbone, locate
from training.vision.side_by_side import SideBySide
from training.vision.yolox import YoloxNano


def random_detector(seed):
    torch.manual_seed(seed)
    return YoloxNano(COCO_CLASSES)


def save_detector(path, seed):
    """Write a detector of random weights as its authors release one."""
    save_convolutions(path, random_detector(seed).convolutions())
    return str(path)


XE = {"name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 6}
END_TO_END = {**XE, "name": "end_to_end", "backbone_learning_rate": 1e-3}
SCST = {**XE, "name": "self_critical", "objective": "self_critical", "beam_size": 2, "schedule": "constant"}


def test_a_frozen_phase_after_fine_tuning_trains_on_features_of_the_fine_tuned_backbone(data, tmp_path):
    trainer = trained(tmp_path, data, XE, END_TO_END, SCST, cache=tmp_path / "features")
    assert len([*(tmp_path / "features").iterdir()]) == 2  # of the released and of the fine-tuned backbone
    dataset, inputs = Flickr8k().open(data), trainer.task.inputs
    batch = inputs.dev_batch(np.arange(4))
    assert batch.frames is None
    frames = dataset.read_images(dataset.split("dev"), Preprocessing(96, 96))
    with torch.inference_mode():
        fresh = trainer.task.trained.backbone(torch.from_numpy(frames))
    torch.testing.assert_close(inputs.visual(batch).tokens, fresh, atol=2e-3, rtol=2e-3)


def test_from_best_loads_captioner_and_backbone_of_the_best_epoch(data, tmp_path):
    # The second phase spoils both halves; the third, at rate 0, shows what it started from.
    spoil = {**END_TO_END, "learning_rate": 0.3, "backbone_learning_rate": 0.01, "name": "spoil"}
    still = {**SCST, "learning_rate": 0.0, "from_best": True}
    learn = {**XE, "epochs": 8, "learning_rate": 3e-3, "warmup_steps": 5, "images_per_batch": 2}
    trainer = trained(tmp_path, data, learn, spoil, still, cache=tmp_path / "features")
    kept = TrainedCaptioner.load(tmp_path / "run" / "best.safetensors")
    assert kept.record["dev"]["phase"] == "frozen"
    assert trainer.progress.history[-1]["cider"] == kept.record["dev"]["cider"]
    for part in ("captioner", "backbone"):
        expected = getattr(kept, part).state_dict()
        found = getattr(trainer.task.trained, part).state_dict()
        assert all(torch.equal(found[name], value) for name, value in expected.items())
    # Features of the spoilt backbone were not even computed, those of the released one were found again.
    assert len([*(tmp_path / "features").iterdir()]) == 1


def test_the_average_of_the_weights_is_scored_saved_and_passed_on(data, tmp_path):
    learn = {**XE, "epochs": 1, "learning_rate": 3e-3}
    still = {**XE, "name": "still", "epochs": 1, "learning_rate": 0.0}
    averaged = trained(tmp_path / "averaged", data, {**learn, "average": 0.9}, still)
    plain = trained(tmp_path / "plain", data, learn, still).task.trained.captioner.state_dict()
    kept = TrainedCaptioner.load(tmp_path / "averaged" / "run" / "best.safetensors").captioner.state_dict()
    found = averaged.task.trained.captioner.state_dict()
    assert all(torch.allclose(found[name], value, atol=1e-6) for name, value in kept.items())
    assert not all(torch.allclose(found[name], value, atol=1e-6) for name, value in plain.items())
    first, second = averaged.progress.history
    assert first["cider"] == second["cider"]


def test_a_network_beside_the_backbone_provides_tokens_and_learns(data, tmp_path):
    trainer = trained(tmp_path, data, END_TO_END, more_backbones=["efficientnet_lite1"])
    kept = TrainedCaptioner.load(tmp_path / "run" / "best.safetensors")
    assert isinstance(kept.backbone, SideBySide)
    assert kept.captioner.config.token_width == kept.backbone.spec.token_width == 2 * 1280
    released = load_backbone(locate("efficientnet_lite1", Path())).state_dict()
    found = trainer.task.trained.backbone.grids[1].state_dict()
    assert not any(torch.equal(found[name], tensor) for name, tensor in released.items())
    assert any("EfficientNet-Lite1" in entry["name"] for entry in kept.record["backbone_trained_on"])


def test_a_phase_in_8_bits_is_saved_as_such_and_the_next_phase_computes_in_floats(data, tmp_path):
    eight = {**XE, "name": "eight", "eight_bits": True, "average": 0.5}
    first = trained(tmp_path, data, XE, eight)
    kept = TrainedCaptioner.load(tmp_path / "run" / "best.safetensors")
    assert kept.eight_bits == (kept.record["dev"]["phase"] == "eight")
    assert first.task.trained.eight_bits
    assert not trained(tmp_path / "more", data, XE, eight, {**XE, "name": "floats"}).task.trained.eight_bits


def test_patience_ends_a_phase_early(data, tmp_path):
    still = {**XE, "learning_rate": 0.0, "epochs": 9, "patience": 2}
    trainer = trained(tmp_path, data, still, {**still, "name": "again", "patience": 1})
    epochs = [(entry["phase"], entry["epoch"]) for entry in trainer.progress.history]
    assert epochs == [("frozen", 1), ("frozen", 2), ("frozen", 3), ("again", 1), ("again", 2)]


def test_a_run_resumes_with_other_compute_options_but_not_as_another_experiment(data, tmp_path):
    trained(tmp_path, data, XE)
    assert trained(tmp_path, data, {**XE, "accumulate": 3}, checkpoint_minutes=9).progress.phase == 1
    with pytest.raises(ConfigError, match="another experiment"):
        trained(tmp_path, data, {**XE, "learning_rate": 1e-4})
    (tmp_path / "run" / "best.safetensors").replace(tmp_path / "run" / "checkpoint.safetensors")
    with pytest.raises(CheckpointError, match=r"is not the state of a run .* remove it to start afresh"):
        trained(tmp_path, data, XE)


def test_start_from_another_kind_of_captioner_is_refused_and_the_folder_remains_free(data, tmp_path):
    first, sizes = str(trained(tmp_path / "first", data, XE).result), {"d_model": 32, "heads": 4, "d_ff": 64}
    for phase, changes, complaint in (
        ({**XE, "presence_weight": 0.3}, {}, "presence_weight is for cross_entropy, of a model with things, on data"),
        ({**XE, "absent_penalty": 0.3}, {}, "absent_penalty is for self_critical, on data with lists of things"),
        (XE, {"model": {**sizes, "d_model": 16}}, r"another size: .* is \(.*32.*\), this experiment's is \(.*16.*\)"),
        (XE, {"family": "transformer", "model": sizes}, "is a captioner of the family smart, not transformer"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            new_trainer(tmp_path, data, phase, start_from=first, **changes)
    new_trainer(tmp_path, data, XE)
    Path(first).with_name("checkpoint.safetensors").unlink()
    with pytest.raises(OutputError, match="is also an input"):
        new_trainer(tmp_path / "first", data, XE, start_from=first)


def test_start_from_with_an_extended_vocabulary_keeps_the_old_words_and_gives_new_ones_their_mean(data, tmp_path):
    rare = {"minimum_count": 13, "max_words": 12}
    trained(tmp_path, data, XE, data=rare)
    other = str(tmp_path / "run" / "best.safetensors")
    first = TrainedCaptioner.load(Path(other))
    still = {**SCST, "learning_rate": 0.0}
    extended = {"minimum_count": 5, "max_words": 12, "extend_vocabulary": True}
    second = trained(tmp_path / "second", data, still, data=extended, start_from=other).task.trained
    known = len(first.vocabulary)
    assert second.vocabulary.words[:known] == first.vocabulary.words
    assert len(set(second.vocabulary.words)) == len(second.vocabulary) > known
    for name, before in first.captioner.state_dict().items():
        after = second.captioner.state_dict()[name]
        if before.shape == after.shape:
            assert torch.equal(before, after)
        else:
            assert torch.equal(after[:known], before)
            torch.testing.assert_close(after[known:], before.mean(dim=0).expand(len(after) - known, -1))


def test_start_from_does_not_replace_the_detector_that_the_experiment_names(data, tmp_path):
    files = {name: save_detector(tmp_path / f"{name}.onnx", seed) for seed, name in enumerate(("before", "after"))}
    trained(tmp_path, data, XE, END_TO_END, yolox=str(files["before"]))
    other = tmp_path / "run" / "best.safetensors"
    still = {**SCST, "learning_rate": 0.0}
    trainer = trained(tmp_path / "second", data, still, start_from=str(other), yolox=str(files["after"]))
    first, second = TrainedCaptioner.load(other).backbone, trainer.task.trained.backbone
    assert all(
        torch.equal(*pair) for pair in zip(first.grids[0].parameters(), second.grids[0].parameters(), strict=True)
    )
    for backbone, seed in ((first, 0), (second, 1)):
        expected = random_detector(seed).network.state_dict()
        for name, tensor in backbone.yolox.network.state_dict().items():
            torch.testing.assert_close(tensor, expected[name], atol=0, rtol=0)
