"""Detectors of every layout find what is there, where it is; whatever is no detector is refused with a sentence."""

import json
import math

import numpy as np
import pytest

from smart_caption_ros.captioning import Detector, DetectorError, EngineError
from smart_caption_ros.detection.class_names import COCO_CLASSES, normalise
from smart_caption_ros.detection.detections import MAX_OBJECTS
from smart_caption_ros.imaging import read_image
from tests.detection.test_boxes import plain_iou
from tests.detection.tiny_detectors import (
    BLUE,
    GREEN,
    RED,
    SIDE,
    cells,
    squares,
    write_boxes_scores_labels,
    write_other,
    write_yolox,
)


def load(path, **options):
    return Detector.from_onnx(path, engine="onnxruntime-cpu", threads=1, **options)


def found(objects):
    return {(detected.class_name, tuple(round(edge, 2) for edge in detected.box_xyxy)) for detected in objects}


@pytest.mark.parametrize("decoded", [False, True])
def test_yolox_finds_each_square_in_its_place_and_colour(tmp_path, decoded):
    detector = load(write_yolox(tmp_path / "d.onnx", decoded=decoded), minimum_score=0.9)
    assert detector.layout == "yolox"
    frame = squares(SIDE, SIDE, (BLUE, (8, 0, 16, 8)), (GREEN, (32, 16, 48, 32)), (RED, (0, 32, 32, 64)))
    objects = detector.detect(frame)
    at_least = {(BLUE, (8, 0, 16, 8)), (GREEN, (32, 16, 48, 32)), (RED, (0, 32, 32, 64))}
    assert at_least <= found(objects)
    assert all(detected.score == pytest.approx(1) for detected in objects)
    assert {detected.class_name: detected.class_id for detected in objects} == {BLUE: 0, GREEN: 16, RED: 56}


def test_a_frame_of_another_shape_gets_boxes_in_its_own_pixels(tmp_path):
    detector = load(write_yolox(tmp_path / "d.onnx"), minimum_score=0.9)
    frame = squares(10 * SIDE, 5 * SIDE, (GREEN, (320, 160, 480, 320)))  # the lower half of the picture is padding
    assert (GREEN, (320, 160, 480, 320)) in found(detector.detect(frame))


def test_the_minimum_score_decides_what_is_left_out(tmp_path):
    path = write_yolox(tmp_path / "d.onnx")
    dim = np.full((SIDE, SIDE, 3), (100, 0, 0), np.uint8)  # a score of 0.39 everywhere
    assert not load(path, minimum_score=0.5).detect(dim)
    objects = load(path).detect(dim)
    assert len(objects) == len(cells()), "neighbouring cells do not overlap enough to be one object"
    assert objects[0].score == pytest.approx(100 / 255, abs=1e-4)


@pytest.mark.parametrize("write", [write_yolox, write_boxes_scores_labels])
def test_every_class_has_its_highest_score_also_below_the_minimum(tmp_path, write):
    detector = load(write(tmp_path / "d.onnx"), minimum_score=0.9, class_names=COCO_CLASSES)
    frame = squares(SIDE, SIDE, (BLUE, (0, 0, 32, 32))) // 2
    detections = detector.detections(frame)
    assert detections.objects == detector.detect(frame) == ()
    assert detections.class_scores.complete
    scores = detections.class_scores.scores
    assert scores.keys() == set(COCO_CLASSES)
    assert 0.1 < scores[BLUE] < 0.9
    assert scores[GREEN] == scores["zebra"] == 0


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e30])
def test_boxes_that_are_no_boxes_are_left_out_and_the_others_stay(tmp_path, wrong):
    regression = np.tile(np.array([0.5, 0.5, 0.0, 0.0], np.float32), (len(cells()), 1))
    regression[::3] = wrong
    detector = load(write_yolox(tmp_path / "d.onnx", regression=regression))
    objects = detector.detect(np.full((SIDE, SIDE, 3), 255, np.uint8))
    assert objects
    for detected in objects:
        left, top, right, bottom = detected.box_xyxy
        assert 0 <= left < right <= SIDE
        assert 0 <= top < bottom <= SIDE


@pytest.mark.parametrize("options", [{}, {"fractions": True}, {"frame_size": True}, {"batch": False}])
def test_graphs_that_end_in_boxes_scores_and_labels_find_the_same(tmp_path, options):
    detector = load(
        write_boxes_scores_labels(tmp_path / "d.onnx", **options), minimum_score=0.9, class_names=COCO_CLASSES
    )
    assert detector.layout == "boxes-scores-labels"
    frame = squares(2 * SIDE, 4 * SIDE, (BLUE, (16, 0, 32, 32)), (GREEN, (64, 64, 96, 128)), (RED, (0, 128, 64, 256)))
    expected = {(BLUE, (16, 0, 32, 32)), (GREEN, (64, 64, 96, 128)), (RED, (0, 128, 64, 256))}
    assert expected <= found(detector.detect(frame))


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"scores": [math.nan, 0.9]}, 1),
        ({"scores": [7.0, 0.9]}, 2),
        ({"labels": [80, 0]}, 1),
        ({"labels": [-1, 0]}, 1),
        ({"labels": [0]}, r"boxes \[2, 4\], scores \[2\], labels \[1\], which do not go together"),
        ({"boxes": [[9, 9, 1, 1], [0, 0, 9, 9]]}, 1),
        ({"boxes": [[-90, -90, -1, -1], [-5, -5, 900, 900]]}, 1),
        ({"boxes": [[math.nan] * 4, [5, 5, 5, 9]]}, 0),
        ({"boxes": [[1, 1, 50, 50]] * 800, "scores": np.linspace(0.4, 0.9, 800), "labels": [7] * 800}, MAX_OBJECTS),
    ],
)
def test_what_is_no_object_is_left_out(tmp_path, change, kept):
    detector = load(write_boxes_scores_labels(tmp_path / "d.onnx"), class_names=COCO_CLASSES)
    outputs = {"boxes": [[0, 0, 9, 9], [0, 0, 9, 9]], "scores": [0.9, 0.8], "labels": [0, 1], **change}
    detector._graph.run = lambda inputs: {
        "boxes": np.array(outputs["boxes"], np.float32),
        "scores": np.array(outputs["scores"], np.float32),
        "labels": np.array(outputs["labels"], np.int64),
    }
    frame = np.zeros((SIDE, SIDE, 3), np.uint8)
    if isinstance(kept, str):
        with pytest.raises(EngineError, match=kept):
            detector.detect(frame)
        return
    objects = detector.detect(frame)
    assert len(objects) == kept
    assert [detected.score for detected in objects] == sorted((detected.score for detected in objects), reverse=True)
    for detected in objects:
        assert 0 <= detected.score <= 1
        assert 0 <= min(detected.box_xyxy) < max(detected.box_xyxy) <= SIDE


def test_names_beside_the_graph_go_before_those_in_it_and_are_brought_to_one_spelling(tmp_path):
    path = write_boxes_scores_labels(tmp_path / "d.onnx", names="['a', 'b']")
    assert load(path).class_names == ("a", "b")
    path.with_suffix(".txt").write_bytes(b"\xef\xbb\xbfTV_Monitor\ntvmonitor\nDining-Table\n")  # as some editors do
    assert load(path).class_names == ("television", "television", "dining table")
    assert load(path, class_names=["pottedplant"]).class_names == ("potted plant",)


@pytest.mark.parametrize(
    "written",
    [
        "{0: 'cat', 2: 'tvmonitor'}",
        '{"0": "cat", "2": "tvmonitor"}',
        '{"cat": 0, "tvmonitor": 2}',
        "[[0, 'cat'], [2, 'tvmonitor']]",
        '["cat", "", "tvmonitor"]',
        "cat, , tvmonitor",
        "cat\n\ntvmonitor\n",
        "0: cat, 2: tvmonitor",
        "2  tvmonitor\n0  cat\n",
        "0. cat\n2. tvmonitor",
        "- cat\n- \n- 'tvmonitor'\n",
        '0,"cat"\n2,"tvmonitor"',
    ],
)
def test_names_are_read_however_they_are_written(tmp_path, written):
    path = write_boxes_scores_labels(tmp_path / "d.onnx", names=written)
    assert load(path).class_names == ("cat", "", "television")
    path = write_boxes_scores_labels(tmp_path / "e.onnx")
    path.with_suffix(".txt").write_bytes(b"\xef\xbb\xbf" + written.encode())
    assert load(path).class_names == ("cat", "", "television")


@pytest.mark.parametrize(
    "written",
    ["id,name\n0,cat\n1,dog", "names:\n  0: cat\n  1: dog", "item {\n  id: 1\n  name: 'cat'\n}",
     '["cat", null]', "{'cat', 'dog'}", '{"0": "cat", "1": 5}', '{"cat": "feline"}', "0 cat\n0 dog", "[cat]",
     "{[]: 1}", "{{}: 'a'}", "(" * 5000, "[" * 400, "(0)", "{-1: 'cat'}"],
)  # fmt: skip
def test_metadata_that_is_no_list_of_names_is_refused_and_not_passed_over(tmp_path, written):
    path = write_yolox(tmp_path / "d.onnx", names=written)
    with pytest.raises(DetectorError, match=r"the names of its classes in its metadata: .*; write their names"):
        load(path)
    path.with_suffix(".txt").write_text("\n".join(COCO_CLASSES))
    assert load(path).class_names == COCO_CLASSES


def test_classes_that_name_nothing_are_left_out(tmp_path):
    path = write_yolox(tmp_path / "d.onnx")
    names = ["__background__" if name == GREEN else "N/A" if name == RED else name for name in COCO_CLASSES]
    path.with_suffix(".txt").write_text("\n".join(names))
    frame = squares(SIDE, SIDE, (BLUE, (8, 0, 16, 8)), (GREEN, (32, 16, 48, 32)), (RED, (0, 32, 32, 64)))
    assert {detected.class_name for detected in load(path).detect(frame)} == {BLUE}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"one\ntwo\n", "has 80 classes, but .*d.txt are 2 names"),
        (b"\n" * 80, "has 80 classes, but .*d.txt are 0 names"),
        (b"none\n" * 80, "name no class"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (b"{'cat': 'dog'}", "neither a list of names nor a name for each class id"),
    ],
)
def test_a_list_of_names_that_does_not_fit_is_refused(tmp_path, content, sentence):
    path = write_yolox(tmp_path / "d.onnx")
    path.with_suffix(".txt").write_bytes(content)
    with pytest.raises(DetectorError, match=sentence):
        load(path)


def broken(path):
    path.write_bytes(write_yolox(path).read_bytes()[:-200])
    return path


@pytest.mark.parametrize(
    ("make", "options", "error", "sentence"),
    [
        (lambda path: path, {}, DetectorError, r"d\.onnx: there is no such detector"),
        (broken, {}, EngineError, r"d\.onnx cannot be loaded"),
        (write_boxes_scores_labels, {}, DetectorError, r"its classes are not known; write their names.*into .*d\.txt"),
        (write_yolox, {"minimum_score": 1.1}, ValueError, "minimum_score must lie between 0 and 1"),
        (write_yolox, {"minimum_score": math.nan}, ValueError, "minimum_score must lie between 0 and 1"),
    ],
)
def test_a_detector_that_cannot_be_used_is_refused_by_name(tmp_path, make, options, error, sentence):
    with pytest.raises(error, match=sentence):
        load(make(tmp_path / "d.onnx"), **options)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"images": [1, 3, 640, 640]}, {"output": [1, 84, 8400]}),
        ({"images": [1, 3, 64, 64]}, {"output": [1, 1000]}),
        ({"images": [1, 3, 64, 64]}, {"output": [1, 84, 5]}),
        ({"images": [2, 3, 64, 64]}, {"output": [2, 84, 85]}),
        ({"a": [1, 3, 64, 64], "b": [1]}, {"output": [1, 84, 85]}),
        ({"pixel_values": [1, 3, 64, 64]}, {"logits": [1, 9, 92], "pred_boxes": [1, 9, 4]}),
        ({"x": [1, 12]}, {"boxes": [1, 3, 4], "scores": [1, 3], "labels": [1, 3]}),
    ],
)
def test_another_layout_is_refused_with_what_was_found(tmp_path, inputs, outputs):
    path = write_other(tmp_path / "d.onnx", inputs, outputs)
    with pytest.raises(DetectorError) as caught:
        load(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    for name, shape in (inputs | outputs).items():
        assert f"{name} float32 {shape}" in sentence
    assert "YOLOX" in sentence
    assert "boxes, scores and labels" in sentence


def test_what_yolox_nano_is_sure_of_is_there_in_photographs(data_dir):
    detector = load(data_dir / "detectors" / "yolox_nano.onnx", minimum_score=0.7)
    coco = json.loads((data_dir / "coco_mini" / "instances_val2017.json").read_text())
    names = {category["id"]: normalise(category["name"]) for category in coco["categories"]}
    right = []
    for image in coco["images"][:20]:
        known = [
            (names[annotation["category_id"]], (left, top, left + width, top + height))
            for annotation in coco["annotations"]
            for left, top, width, height in [annotation["bbox"]]
            if annotation["image_id"] == image["id"]
        ]
        frame = read_image(data_dir / "coco_mini" / "images" / image["file_name"])
        right += [
            any(name == detected.class_name and plain_iou(detected.box_xyxy, box) > 0.5 for name, box in known)
            for detected in detector.detect(frame)
        ]
    assert len(right) >= 15
    assert sum(right) >= 0.8 * len(right)
