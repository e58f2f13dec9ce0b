"""The command that labels objects: by a detector on photographs, by the renderer on household frames."""

import json
import sys
from pathlib import Path

import pytest

from smart_caption_ros.sources.acvr import AcvrSequences
from tests.detection.tiny_detectors import write_yolox
from tests.sources.acvr_sequence import write_rooms
from training import label_objects as label
from training.data.flickr8k import Flickr8k
from training.detection.labels import read_records


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["label", *map(str, arguments)])
    return label.main()


def test_a_detector_labels_the_photographs_of_a_data_set_with_boxes_in_fractions(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SMART_CAPTION_DATA", str(data))
    teacher = write_yolox(tmp_path / "teacher.onnx")
    options = ["--dataset", "flickr8k", "--detector", teacher, "--minimum-score", 0.5, "-o", tmp_path / "labels.jsonl"]
    assert run(monkeypatch, *options) == 0
    header, records = read_records(tmp_path / "labels.jsonl")
    assert (header["made_by"], header["minimum_score"]) == ("teacher.onnx", 0.5)
    dataset = Flickr8k(data / "flickr8k")
    assert [record["image"] for record in records] == dataset.split("train") + dataset.split("dev")
    boxes = [box for record in records for box in record["boxes"]]
    assert boxes
    assert all(0 <= left < right <= 1 and 0 <= top < bottom <= 1 for left, top, right, bottom in boxes)
    assert all(score >= 0.5 for record in records for score in record["scores"])
    assert "16 photographs" in capsys.readouterr().out


def test_a_stopped_command_resumes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SMART_CAPTION_DATA", str(data))
    options = ["--dataset", "flickr8k", "--detector", write_yolox(tmp_path / "t.onnx")]
    assert run(monkeypatch, *options, "-o", tmp_path / "whole.jsonl") == 0
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "cut.jsonl.unfinished").write_text("".join(lines[:5]) + lines[5][:20])
    assert run(monkeypatch, *options, "-o", tmp_path / "cut.jsonl") == 0
    assert (tmp_path / "cut.jsonl").read_text() == "".join(lines)
    assert "12 that were new" in capsys.readouterr().out


def test_household_frames_have_the_renderers_boxes_and_the_ids_of_their_captions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    write_rooms(root)
    assert run(monkeypatch, "--household", root, "-o", tmp_path / "labels.jsonl") == 0
    header, records = read_records(tmp_path / "labels.jsonl")
    assert len(header["classes"]) == 30
    frames = list(AcvrSequences(root).frames())
    assert [record["image"] for record in records] == [
        str(int(frame.sequence) * 1_000_000 + int(frame.frame)) for frame in frames
    ]
    for record, frame in zip(records, frames, strict=True):
        assert record["classes"] == [thing.class_name for thing in frame.objects]
        for box, thing in zip(record["boxes"], frame.objects, strict=True):
            pixels = [box[0] * frame.width, box[1] * frame.height, box[2] * frame.width, box[3] * frame.height]
            assert pixels == pytest.approx(thing.box_xyxy, abs=0.1)


def test_wrong_options_are_refused_in_one_sentence(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SMART_CAPTION_DATA", str(data))
    output = ["-o", tmp_path / "labels.jsonl"]
    assert run(monkeypatch, "--household", tmp_path / "nowhere", *output) == 1
    assert run(monkeypatch, "--dataset", "flickr8k", "--options", "{folders: x}", *output) == 1
    assert run(monkeypatch, "--dataset", "flickr8k", "--minimum-score", 0, *output) == 1
    said = capsys.readouterr().err
    assert json.dumps(said).count("error: ") == 3
    assert "Traceback" not in said
    assert not (tmp_path / "labels.jsonl").exists()
