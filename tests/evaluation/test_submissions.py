"""Detections in the challenge's submission format, in the place of ground truth."""

import json

import pytest

from smart_caption_ros.evaluation.submissions import DetectedFrames
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.acvr import AcvrSequences
from smart_caption_ros.sources.ground_truth import DatasetIssue
from tests.sources.acvr_sequence import Drawn, write_sequence

CLASSES = ["none", "chair", "diningtable", "tv"]


def detection(label, score, box=(10, 20, 39, 69)):
    probabilities = [(1 - score) / (len(CLASSES) - 1)] * len(CLASSES)
    probabilities[label] = score
    return {"bbox": list(box), "covars": [[[1, 0], [0, 1]], [[1, 0], [0, 1]]], "label_probs": probabilities}


def written(path, detections, classes=CLASSES):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"classes": classes, "detections": detections}))
    return path


@pytest.fixture
def root(tmp_path):
    """Two sequences of three frames; the second has no labels."""
    for sequence in ("000000", "000001"):
        write_sequence(
            tmp_path / "root" / sequence, {number: [Drawn("cup", 1, 1, (0, 0, 9, 9))] for number in range(3)}
        )
    (tmp_path / "root" / "000001" / "labels.json").unlink()
    for mask in (tmp_path / "root" / "000001").glob("?.png"):
        mask.unlink()
    return tmp_path / "root"


def test_the_nth_list_belongs_to_the_nth_frame_and_replaces_its_objects(root, tmp_path):
    lists = [[detection(1, 0.9)], [], [detection(2, 0.8), detection(3, 0.5, (0, 0, 9, 9))]]
    written(tmp_path / "found" / "000000.json", lists)
    written(tmp_path / "found" / "1.json", [[], [detection(1, 0.6)], []])
    data = DetectedFrames(AcvrSequences(root, objects=False), tmp_path / "found")
    frames = list(data.frames())
    assert not data.issues
    assert [[thing.class_name for thing in frame.objects] for frame in frames] == [
        ["chair"], [], ["dining table", "television"], [], ["chair"], [],
    ]  # fmt: skip
    assert [frame.name for frame in frames[2:4]] == ["000000/000002", "000001/000000"]
    assert frames[0].objects[0].box_xyxy == (10, 20, 40, 70)
    assert frames[0].objects[0].area_share == 0.15
    assert [frame.objects[0].class_name for frame in data.frames(2) if frame.objects] == ["chair", "dining table"]


def test_a_frame_that_lost_its_image_keeps_its_list(root, tmp_path):
    (root / "000000" / "rgb_000000.png").unlink()
    path = written(tmp_path / "any name.json", [[detection(1, 0.9)], [detection(2, 0.9)], []])
    data = DetectedFrames(AcvrSequences(root / "000000", objects=False), path)
    assert [[thing.class_name for thing in frame.objects] for frame in data.frames()] == [["dining table"], []]
    assert data.issues.to_json()[DatasetIssue.FRAME_WITHOUT_IMAGE.value]["count"] == 1


def test_malformed_detections_are_left_out_and_counted(root, tmp_path):
    good = detection(1, 0.9)
    bad = [
        {**good, "bbox": [1, 2]},
        {**good, "label_probs": []},
        {**good, "label_probs": [0, 0, 0, 0, 1]},
        {**good, "label_probs": ["0.9"]},
        {**good, "label_probs": [float("nan"), 1, 0, 0]},
        {**good, "label_probs": [10**400, 0, 0, 0]},
        {"bbox": good["bbox"]},
    ]
    certain = {**good, "label_probs": [0, 2**60 + 1, 0, 0]}
    path = written(tmp_path / "000000.json", [[*bad, certain], [], [detection(1, 0.9, (200, 0, 210, 9))]])
    data = DetectedFrames(AcvrSequences(root / "000000", objects=False), path)
    assert [len(frame.objects) for frame in data.frames()] == [1, 0, 0]
    assert data.issues.to_json()[DatasetIssue.MALFORMED_OBJECT.value]["count"] == len(bad)
    assert data.issues.to_json()[DatasetIssue.BOX_OUTSIDE.value]["count"] == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not JSON"),
        ("[]", "is no submission of detections: it lacks the list of classes"),
        ('{"classes": [], "detections": [[], [], []]}', "lacks the list of classes"),
        ('{"classes": ["none"], "detections": 3}', "`detections` must hold a list of objects a frame"),
        ('{"classes": ["none"], "detections": [3, [], []]}', "`detections` must hold a list of objects a frame"),
        ('{"classes": ["none"], "detections": [[{}], [], []]}', "`detections` must hold a list of objects a frame"),
        ('{"classes": ["none"], "detections": [[]]}', "holds 1 lists of detections, but sequence 000000 has 3 frames"),
    ],
)
def test_files_that_are_no_submission_of_the_sequence_are_refused(root, tmp_path, content, sentence):
    (tmp_path / "000000.json").write_text(content)
    with pytest.raises(SourceError, match=sentence):
        DetectedFrames(AcvrSequences(root, objects=False), tmp_path / "000000.json")
