"""Training of a detector: its effect, resuming, two processes and refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from tests.training.detection.boxes_of_drawings import CLASSES, write_labels
from tests.training.event_files import scalars
from tests.training.processes import run_in_processes
from training.checkpoint import load_checkpoint
from training.data.flickr8k import Flickr8k
from training.detection.labels import read_labels
from training.detection.loss import generalised_iou
from training.engine.experiment import load_run
from training.engine.tasks.detection import DetectionTask
from training.engine.trainer import Trainer
from training.errors import DataError
from training.vision.detection_classes import DETECTION_CLASSES
from training.vision.trained_detector import TrainedDetector, with_classes
from training.vision.yolox import YoloxNano

PHASE = {
    "name": "heads", "epochs": 3, "learning_rate": 1e-3, "warmup_steps": 100, "images_per_batch": 4, "average": 0.9,
    "optimizer": {"name": "adamw", "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 1e-4},
}  # fmt: skip


@pytest.fixture(scope="module")
def labels(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labels(tmp_path_factory.mktemp("labels") / "drawings.jsonl", data)


@pytest.fixture
def random_detector(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    TrainedDetector(YoloxNano(tuple(CLASSES.values())), {"trained_on": []}).save(tmp_path / "random.safetensors")
    return tmp_path / "random.safetensors"


@pytest.fixture
def released_detector(data_dir: Path) -> Path:
    return data_dir / "detectors" / "yolox_nano.onnx"


def written(folder: Path, detector: Path, labels: Path, **changes: Any) -> Path:
    """An experiment file; ``changes`` are of its phase."""
    experiment = {
        "task": "detection", "name": "drawings", "detector": str(detector), "labels": [str(labels)],
        "precision": "fp32", "checkpoint_minutes": 0, "log_every": 1, "phases": [{**PHASE, **changes}],
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(experiment))
    return folder / "config.yaml"


def trainer_of(folder: Path, data: Path, detector: Path, labels: Path, **changes: Any) -> Trainer:
    config = load_run(written(folder, detector, labels, **changes))
    return Trainer(config, data, folder / "run", folder / "features")


def trained(folder: Path, data: Path, detector: Path, labels: Path, **changes: Any) -> Path:
    trainer = trainer_of(folder, data, detector, labels, **changes)
    trainer.run()
    return trainer.result


def found_share(path: Path, data: Path, labels: Path) -> float:
    """Share of the drawings whose most probable box has the right class and place."""
    detector = TrainedDetector.load(path).detector
    dataset, known = Flickr8k(data / "flickr8k"), read_labels([str(labels)], data, detector.class_names)
    images = dataset.split("train")
    with torch.inference_mode():
        found = detector(torch.from_numpy(dataset.read_images(images)))
    right = 0
    for index, image in enumerate(images):
        cell, class_id = divmod(int(found.class_scores[index].argmax()), len(detector.class_names))
        overlap = generalised_iou(found.boxes_xyxy[index, cell][None], torch.from_numpy(known.boxes[image].xyxy))
        right += class_id == known.boxes[image].class_ids[0] and float(overlap) > 0.5
    return right / len(images)


def test_a_trained_detector_finds_the_drawn_objects(
    released_detector: Path, data: Path, labels: Path, tmp_path: Path
) -> None:
    assert found_share(trained(tmp_path / "short", data, released_detector, labels, epochs=1), data, labels) < 0.5
    result = trained(tmp_path / "long", data, released_detector, labels, epochs=12)
    assert result.name == "detector.safetensors"
    assert found_share(result, data, labels) >= 0.9
    detector = TrainedDetector.load(result)
    assert detector.detector.class_names == DETECTION_CLASSES
    assert (detector.record["photographs"], detector.record["boxes_by"]) == (12, ["test"])
    assert detector.record["epochs"] == 12


def test_keep_holds_the_output_on_images_without_labels(
    released_detector: Path, data: Path, labels: Path, tmp_path: Path
) -> None:
    half = tmp_path / "half.jsonl"
    header, *lines = labels.read_text().splitlines()
    half.write_text("\n".join([header, *lines[: len(lines) // 2]]) + "\n")
    dataset, unlabelled = Flickr8k(data / "flickr8k"), [json.loads(line)["image"] for line in lines[len(lines) // 2 :]]
    frames = torch.from_numpy(dataset.read_images(unlabelled))
    before = with_classes(TrainedDetector.load(released_detector).detector, DETECTION_CLASSES)
    moved = {}
    for weight in (0.000001, 40.0):
        result = trained(tmp_path / f"keep{weight}", data, released_detector, half, epochs=6, keep=weight)
        after = TrainedDetector.load(result)
        assert after.record["photographs_kept"] == len(unlabelled)
        assert all(
            torch.equal(a, b) for a, b in zip(*(d.network.parameters() for d in (after.detector, before)), strict=True)
        )
        with torch.inference_mode():
            difference = after.detector(frames).class_scores - before(frames).class_scores
        moved[weight] = float(difference.square().sum())
    assert moved[40.0] < 0.5 * moved[0.000001]


def test_with_keep_0_images_without_labels_are_left_out(
    random_detector: Path, data: Path, labels: Path, tmp_path: Path
) -> None:
    half = tmp_path / "half.jsonl"
    half.write_text("\n".join(labels.read_text().splitlines()[:7]) + "\n")
    task = trainer_of(tmp_path / "half", data, random_detector, half, keep=0).task
    assert isinstance(task, DetectionTask)
    task.begin_phase(0)
    assert len(set(task.begin_epoch(0, np.random.default_rng(0)))) == 6


def test_a_run_stopped_within_an_epoch_resumes_to_the_same_weights(
    random_detector: Path, data: Path, labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(tmp_path / "whole", data, random_detector, labels)
    count, steps = DetectionTask.on_step, []

    def stops(task: DetectionTask, context: Any) -> None:
        count(task, context)
        steps.append(context)
        if len(steps) == 6:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(DetectionTask, "on_step", stops)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "cut", data, random_detector, labels)
    _, state = load_checkpoint(tmp_path / "cut" / "run" / "checkpoint.safetensors")
    assert (state["epoch"], state["step"]) == (1, 1)
    tensors, _ = load_checkpoint(trained(tmp_path / "cut", data, random_detector, labels))
    expected, _ = load_checkpoint(whole)
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in expected.items())


@pytest.mark.long
def test_two_processes_have_the_losses_of_one(random_detector: Path, data: Path, labels: Path, tmp_path: Path) -> None:
    # Five images a batch: the processes' parts are of different sizes; half of the images have no labels.
    half = tmp_path / "half.jsonl"
    half.write_text("\n".join(labels.read_text().splitlines()[:7]) + "\n")
    changes = {"images_per_batch": 5, "crop": 0.6, "epochs": 2}
    trained(tmp_path / "one", data, random_detector, half, **changes)
    config = written(tmp_path / "two", random_detector, half, **changes)
    arguments = (config, "--run", tmp_path / "two" / "run", "--threads", 1, "--device", "cpu")
    done = run_in_processes(2, "training.train", *arguments, SMART_CAPTION_DATA=str(data))
    assert done.returncode == 0, done.stderr
    for tag, tolerance in (("train/loss", 1e-5), ("gradient_norm/detector", 1e-4)):
        expected = scalars(tmp_path / "one" / "run", tag)
        assert len(expected) == 6
        assert scalars(tmp_path / "two" / "run", tag) == pytest.approx(expected, rel=tolerance, abs=1e-5)
    assert done.stdout.count("detector.safetensors") == 1


def test_labels_of_other_photographs_are_refused(
    random_detector: Path, data: Path, labels: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(labels.read_text().replace("train_", "else_"))
    with pytest.raises(DataError, match="no photograph of the training split has labels"):
        trained(tmp_path / "run", data, random_detector, other)
