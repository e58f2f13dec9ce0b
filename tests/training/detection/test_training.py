"""The command that teaches a detector: until it finds what is drawn, resumed, and with clear refusals."""

import json
import sys
from pathlib import Path

import pytest
import torch

from tests.training.detection.boxes_of_drawings import CLASSES, write_labels
from tests.training.small_flickr8k import write_config
from training.checkpoint import load_checkpoint
from training.data.flickr8k import Flickr8k
from training.detection import train
from training.detection.labels import read_labels
from training.detection.loss import generalised_overlaps
from training.vision.detection_classes import DETECTION_CLASSES
from training.vision.trained_detector import TrainedDetector, with_classes
from training.vision.yolox import YoloxNano


@pytest.fixture(scope="module")
def labels(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labels(tmp_path_factory.mktemp("labels") / "drawings.jsonl", data)


@pytest.fixture
def command(data: Path, labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All but epochs and output, for a detector with random weights."""
    monkeypatch.setenv("SMART_CAPTION_DATA", str(data))
    torch.manual_seed(0)
    TrainedDetector(YoloxNano(tuple(CLASSES.values())), {"trained_on": []}).save(tmp_path / "new.safetensors")
    phases = [{"name": "plain", "epochs": 1, "learning_rate": 1e-3}]
    config = write_config(tmp_path / "config.yaml", phases=phases)
    return [
        "train", str(tmp_path / "new.safetensors"), "--data", str(config), "--labels", str(labels), "--threads", "1",
        "--images-per-batch", "4", "--learning-rate", "0.001", "--crop", "1.0", "--average", "0.9",
    ]  # fmt: skip


def found_share(path: Path, data: Path, labels: Path) -> float:
    """Of the drawings whose surest box of all has the right class and place."""
    detector = TrainedDetector.load(path).detector
    dataset, known = Flickr8k(data / "flickr8k"), read_labels([str(labels)], data, detector.class_names)
    images = dataset.split("train")
    with torch.inference_mode():
        found = detector(torch.from_numpy(dataset.read_images(images)))
    right = 0
    for index, image in enumerate(images):
        cell, class_id = divmod(int(found.class_scores[index].argmax()), len(detector.class_names))
        overlap = generalised_overlaps(found.boxes_xyxy[index, cell][None], torch.from_numpy(known.boxes[image].xyxy))
        right += class_id == known.boxes[image].class_ids[0] and float(overlap) > 0.5
    return right / len(images)


def test_the_command_teaches_the_released_detector_to_find_what_is_drawn(
    data_dir: Path, data: Path, labels: Path, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    output = tmp_path / "detector.safetensors"
    command[1] = str(data_dir / "detectors" / "yolox_nano.onnx")
    monkeypatch.setattr(sys, "argv", [*command, "-o", str(output), "--epochs", "1"])
    assert train.main() == 0
    assert found_share(output, data, labels) < 0.5
    monkeypatch.setattr(sys, "argv", [*command, "-o", str(output), "--epochs", "12"])
    assert train.main() == 0
    assert found_share(output, data, labels) >= 0.9
    record = TrainedDetector.load(output).record
    assert (record["photographs"], record["boxes_by"]) == (12, ["test"])
    assert not output.with_name(f"{output.name}.unfinished").exists()
    assert "a detector of 80 classes, from 12 photographs" in capsys.readouterr().out


def test_on_photographs_without_labels_the_detector_stays_nearer_to_what_it_was(
    data_dir: Path, data: Path, labels: Path, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = tmp_path / "half.jsonl"
    header, *lines = labels.read_text().splitlines()
    half.write_text("\n".join([header, *lines[: len(lines) // 2]]) + "\n")
    command[1] = str(data_dir / "detectors" / "yolox_nano.onnx")
    command[command.index("--labels") + 1] = str(half)
    dataset, unlabelled = Flickr8k(data / "flickr8k"), [json.loads(line)["image"] for line in lines[len(lines) // 2 :]]
    frames = torch.from_numpy(dataset.read_images(unlabelled))
    before = with_classes(TrainedDetector.load(Path(command[1])).detector, DETECTION_CLASSES)
    moved = {}
    for weight in ("0.000001", "40"):
        output = tmp_path / f"keep{weight}.safetensors"
        monkeypatch.setattr(sys, "argv", [*command, "-o", str(output), "--epochs", "6", "--keep", weight])
        assert train.main() == 0
        after = TrainedDetector.load(output)
        assert after.record["photographs_kept"] == len(unlabelled)
        assert all(
            torch.equal(a, b) for a, b in zip(*(d.network.parameters() for d in (after.detector, before)), strict=True)
        )
        with torch.inference_mode():
            difference = after.detector(frames).class_scores - before(frames).class_scores
        moved[weight] = float(difference.square().sum())
    assert moved["40"] < 0.5 * moved["0.000001"]


def test_the_command_goes_on_after_the_last_whole_epoch(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(output: Path) -> int:
        monkeypatch.setattr(sys, "argv", [*command, "-o", str(output), "--epochs", "3"])
        return train.main()

    assert run(tmp_path / "whole.safetensors") == 0
    keep = train._Run._keep

    def stops(run: train._Run) -> None:
        keep(run)
        if run._epoch == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(train._Run, "_keep", stops)
        assert run(tmp_path / "cut.safetensors") == 130
    state = load_checkpoint(tmp_path / "cut.safetensors.unfinished")[1]
    assert state["epoch"] == 1, json.dumps(state)
    assert run(tmp_path / "cut.safetensors") == 0
    whole, cut = (load_checkpoint(tmp_path / f"{name}.safetensors")[0] for name in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    assert all(torch.equal(tensor, cut[name]) for name, tensor in whole.items())
    assert "goes on after the last whole epoch" in capsys.readouterr().err


def test_labels_of_other_photographs_are_refused(
    labels: Path, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    other = tmp_path / "other.jsonl"
    other.write_text(labels.read_text().replace("train_", "else_"))
    arguments = [str(other) if each == str(labels) else each for each in command]
    monkeypatch.setattr(sys, "argv", [*arguments, "-o", str(tmp_path / "detector.safetensors")])
    assert train.main() == 1
    assert "no photograph of the training split has labels" in capsys.readouterr().err
    assert not (tmp_path / "detector.safetensors").exists()
