"""Files of labels: reading, malformed files, and resuming an unfinished file."""

from pathlib import Path

import numpy as np
import pytest

from training.detection.labels import LabelWriter, read_labels
from training.errors import DataError

HEADER = {"made_by": "test", "classes": ["cup", "tvmonitor"]}
CLASSES = ("television", "cup", "bed")


def write(path: Path, **images: list[tuple[list[float], str, float]]) -> Path:
    with LabelWriter(path, HEADER) as writer:
        for image, found in images.items():
            writer.add(image, [box for box, _, _ in found], [name for _, name, _ in found], [s for *_, s in found])
        writer.finish()
    return path


def test_written_boxes_of_the_detectors_classes_are_read_back(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", one=[([0.1, 0.2, 0.3, 0.4], "tvmonitor", 0.5), ([0, 0, 1, 1], "kite", 0.9)], two=[]
    )
    labels = read_labels([str(path)], tmp_path, CLASSES)
    np.testing.assert_allclose(labels.boxes["one"].xyxy, [[0.1, 0.2, 0.3, 0.4]], atol=1e-6)
    assert labels.boxes["one"].class_ids.tolist() == [0]
    np.testing.assert_allclose(labels.boxes["one"].scores, [0.5])
    assert len(labels.boxes["two"]) == 0
    assert labels.labelled_classes("two").tolist() == [True, True, False]


def test_the_image_ids_of_a_source_begin_with_its_name(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", one=[])
    write(tmp_path / "b.jsonl", one=[])
    labels = read_labels(["rooms=a.jsonl", "b.jsonl"], tmp_path, CLASSES)
    assert set(labels.boxes) == {"rooms/one", "one"}


def test_two_files_with_the_same_photograph_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", one=[])
    with pytest.raises(DataError, match="image one: it has labels already"):
        read_labels(["a.jsonl", "a.jsonl"], tmp_path, CLASSES)


def test_boxes_without_area_inside_the_photograph_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", one=[([0.5, 0.5, 0.5, 0.9], "cup", 1.0), ([1.2, 0.1, 1.4, 0.9], "cup", 1.0)])
    assert len(read_labels(["a.jsonl"], tmp_path, CLASSES).boxes["one"]) == 0


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No such file"),
        ("", "empty"),
        ("boxes", "line 1"),
        ('{"detection_labels": 2, "classes": []}', "version 2"),
        ('{"detection_labels": 1, "classes": []}\n{"image": "one"}', "line 2"),
        ('{"detection_labels": 1, "classes": []}\n{"image": "a", "boxes": [], "classes": ["cup"], "scores": []}', "a:"),
    ],
)
def test_a_malformed_file_is_refused_with_its_name_and_the_line(
    tmp_path: Path, content: str | None, complaint: str
) -> None:
    path = tmp_path / "a.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=complaint) as caught:
        read_labels([str(path)], tmp_path, CLASSES)
    assert str(path) in str(caught.value)


def test_an_unfinished_file_is_continued_without_its_truncated_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with LabelWriter(path, HEADER) as writer:
        writer.add("one", [], [], [])
    assert not path.exists()
    unfinished = path.with_name("a.jsonl.unfinished")
    unfinished.write_text(unfinished.read_text() + '{"image":"two","bo')
    with LabelWriter(path, HEADER) as writer:
        assert writer.done == {"one"}
        writer.add("two", [[0, 0, 1, 1]], ["cup"], [0.7])
        writer.finish()
    assert set(read_labels([str(path)], tmp_path, CLASSES).boxes) == {"one", "two"}
    assert not unfinished.exists()


def test_an_unfinished_file_of_other_settings_is_refused(tmp_path: Path) -> None:
    with LabelWriter(tmp_path / "a.jsonl", HEADER) as writer:
        writer.add("one", [], [], [])
    with pytest.raises(DataError, match="other settings"), LabelWriter(tmp_path / "a.jsonl", {**HEADER, "x": 1}):
        pass
