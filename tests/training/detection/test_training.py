"""A head that learns beside the captioner, or alone: resumed, in parts, and until it finds things."""

import json
import sys
from pathlib import Path

import pytest
import torch

from tests.training.detection.boxes_of_drawings import CLASSES, write_labels
from tests.training.small_flickr8k import write_config
from training.captioning import TrainedCaptioner
from training.checkpoint import load_checkpoint
from training.config import ConfigError, load_config
from training.data.flickr8k import DataError, Flickr8k
from training.detection import train
from training.detection.head import DetectionHead
from training.detection.labels import read_labels
from training.detection.loss import generalised_overlaps
from training.step import GradientStep
from training.trainer import Trainer

FROZEN = {
    "name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 4, "detection_weight": 0.5, "average": 0.5
}  # fmt: skip
JOINT = {**FROZEN, "name": "joint", "epochs": 2, "backbone_learning_rate": 1e-4, "crop": 0.8, "average": 0.9}
PLAIN = {"name": "plain", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 4}


@pytest.fixture(scope="module")
def labels(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labels(tmp_path_factory.mktemp("labels") / "drawings.jsonl", data)


def trainer(folder: Path, data: Path, labels: Path, *phases: dict[str, object], **changes: object) -> Trainer:
    folder.mkdir(exist_ok=True)
    detection = {"labels": str(labels), "width": 16}
    model = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.0}
    changes = {"detection": detection, "model": model, **changes}
    config = load_config(write_config(folder / "config.yaml", phases=list(phases), **changes))
    return Trainer(config, data, folder / "run", data / "features")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_a_run_stopped_in_a_joint_phase_goes_on_bit_for_bit(
    data: Path, labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trainer(tmp_path / "whole", data, labels, FROZEN, JOINT)
    whole.run()
    assert [set(entry) >= {"detection_loss"} for entry in whole.progress.history] == [True, True, True]
    taken, differentiate = 0, GradientStep.differentiate

    def stops(step: GradientStep, read: object) -> object:
        nonlocal taken
        taken += 1
        if taken == 6:
            raise KeyboardInterrupt
        return differentiate(step, read)  # type: ignore[arg-type]

    run = trainer(tmp_path / "cut", data, labels, FROZEN, JOINT)
    with monkeypatch.context() as patched:
        patched.setattr(GradientStep, "differentiate", stops)
        with pytest.raises(KeyboardInterrupt):
            run.run()
    cut = trainer(tmp_path / "cut", data, labels, FROZEN, JOINT)
    cut.run()
    assert same(cut.trained.tensors(), whole.trained.tensors())


def test_boxes_keep_their_place_where_the_engine_rounds_to_16_bits(data: Path, labels: Path, tmp_path: Path) -> None:
    """The first step's loss, before anything is learnt, is that of 32 bits but for the rounding of the head itself."""
    losses = []
    for precision in ("fp32", "bf16"):
        one_step = {**JOINT, "epochs": 1, "images_per_batch": 12, "crop": 1.0}
        run = trainer(tmp_path / precision, data, labels, one_step, precision=precision)
        run.run()
        losses.append(run.progress.history[0]["detection_loss"])
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_a_frozen_backbone_stays_as_it_is_while_the_head_learns(data: Path, labels: Path, tmp_path: Path) -> None:
    run = trainer(tmp_path, data, labels, FROZEN)
    assert run.trained.backbone is not None
    assert run.trained.detector is not None
    before = {name: tensor.clone() for name, tensor in run.trained.tensors().items()}
    run.run()
    after = run.trained.tensors()
    changed = {name.split(".")[0] for name, tensor in after.items() if not torch.equal(tensor, before[name])}
    assert changed == {"captioner", "detector"}


def test_a_phase_without_a_weight_leaves_the_head_alone(data: Path, labels: Path, tmp_path: Path) -> None:
    run = trainer(tmp_path, data, labels, FROZEN, PLAIN)
    run.run()
    assert run.trained.detector is not None
    assert "detection_loss" not in run.progress.history[-1]
    kept = trainer(tmp_path / "one", data, labels, FROZEN)
    kept.run()
    assert kept.trained.detector is not None
    assert same(run.trained.detector.state_dict(), kept.trained.detector.state_dict())


def test_a_batch_in_parts_teaches_the_same_as_a_whole_one(data: Path, labels: Path, tmp_path: Path) -> None:
    # Half of the photographs have no labels, so that the parts have different numbers of them.
    lines = labels.read_text().splitlines(keepends=True)
    half = tmp_path / "half.jsonl"
    half.write_text("".join(lines[:7]))
    joint = {**JOINT, "epochs": 1, "images_per_batch": 6, "schedule": "constant"}
    whole = trainer(tmp_path / "whole", data, half, joint)
    parts = trainer(tmp_path / "parts", data, half, {**joint, "accumulate": 4})
    whole.run()
    parts.run()
    losses = [run.progress.history[0]["detection_loss"] for run in (whole, parts)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    expected = whole.trained.tensors()
    for name, tensor in parts.trained.tensors().items():
        torch.testing.assert_close(tensor, expected[name], atol=2e-3, rtol=1e-2)


def test_what_does_not_go_together_is_refused(data: Path, labels: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are no labels"):
        trainer(tmp_path / "a", data, labels, FROZEN, detection={})
    with pytest.raises(ConfigError, match="no phase has a detection_weight"):
        trainer(tmp_path / "b", data, labels, PLAIN)
    other = tmp_path / "other.jsonl"
    other.write_text(labels.read_text().replace("train_", "else_"))
    with pytest.raises(DataError, match=r"no photograph of train has labels.*'else_0.jpg'"):
        trainer(tmp_path / "c", data, other, FROZEN)


def found_share(trained: TrainedCaptioner, data: Path, labels: Path) -> float:
    """Of the drawings whose surest box of all has the right class and place."""
    assert trained.backbone is not None
    assert isinstance(trained.detector, DetectionHead)
    dataset, known = Flickr8k(data / "flickr8k"), read_labels([str(labels)], data, trained.detector.class_names)
    images = dataset.split("train")
    with torch.inference_mode():
        found = trained.detector(trained.backbone.pyramid(torch.from_numpy(dataset.read_images(images))).levels)
    right = 0
    for index, image in enumerate(images):
        cell, class_id = divmod(int(found.class_logits[index].argmax()), len(trained.detector.class_names))
        overlap = generalised_overlaps(found.boxes_xyxy[index, cell][None], torch.from_numpy(known.boxes[image].xyxy))
        right += class_id == known.boxes[image].class_ids[0] and float(overlap) > 0.5
    return right / len(images)


def test_the_command_trains_a_head_that_finds_what_is_drawn_and_changes_nothing_else(
    data: Path, labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    base = trainer(tmp_path, data, labels, PLAIN, detection={})
    base.run()
    checkpoint, output = tmp_path / "run" / "best.safetensors", tmp_path / "detecting.safetensors"
    monkeypatch.setenv("SMART_CAPTION_DATA", str(data))
    options = ["--labels", str(labels), "-o", str(output), "--width", "32", "--images-per-batch", "4", "--threads", "1"]
    options += ["--learning-rate", "0.003", "--crop", "1.0", "--average", "0.9", "--views", "8", "--epochs"]
    monkeypatch.setattr(sys, "argv", ["train", str(checkpoint), *options, "1"])
    assert train.main() == 0
    assert found_share(TrainedCaptioner.load(output), data, labels) < 0.5
    monkeypatch.setattr(sys, "argv", ["train", str(checkpoint), *options, "60"])
    assert train.main() == 0
    trained = TrainedCaptioner.load(output)
    assert found_share(trained, data, labels) >= 0.9
    assert set(CLASSES.values()) <= set(trained.detector.class_names if trained.detector else ())
    before, after = load_checkpoint(checkpoint)[0], trained.tensors()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert trained.record["detector"]["photographs"] == 12
    assert not output.with_name(f"{output.name}.unfinished").exists()
    assert "a detector of" in capsys.readouterr().out


def test_the_command_goes_on_after_the_last_whole_epoch(
    data: Path, labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer(tmp_path, data, labels, PLAIN, detection={}).run()
    monkeypatch.setenv("SMART_CAPTION_DATA", str(data))

    def command(output: Path) -> int:
        arguments = ["train", str(tmp_path / "run" / "best.safetensors"), "--labels", str(labels), "-o", str(output)]
        monkeypatch.setattr(sys, "argv", [*arguments, "--epochs", "3", "--width", "8", "--threads", "1"])
        return train.main()

    assert command(tmp_path / "whole.safetensors") == 0
    keep = train._Run._keep

    def stops(run: train._Run) -> None:
        keep(run)
        if run._epoch == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(train._Run, "_keep", stops)
        assert command(tmp_path / "cut.safetensors") == 130
    state = load_checkpoint(tmp_path / "cut.safetensors.unfinished")[1]
    assert state["epoch"] == 1, json.dumps(state)
    assert command(tmp_path / "cut.safetensors") == 0
    whole, cut = (load_checkpoint(tmp_path / f"{name}.safetensors")[0] for name in ("whole", "cut"))
    assert same(whole, cut)
    assert "goes on after the last whole epoch" in capsys.readouterr().err
