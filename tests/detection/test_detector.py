"""Detectors of every layout find what is there, where it is; whatever is no detector is refused with a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_caption_ros.captioning import DetectedObject, Detector, DetectorError, EngineError
from smart_caption_ros.detection.class_names import COCO_CLASSES, normalise, parse_class_names
from smart_caption_ros.detection.detections import MAX_OBJECTS
from smart_caption_ros.detection.layouts import letterbox, letterbox_scale
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

Box = tuple[float, float, float, float]


def load(path: Path, **options: Any) -> Detector:
    return Detector.from_onnx(path, engine="onnxruntime-cpu", threads=1, **options)


def found(objects: tuple[DetectedObject, ...]) -> set[tuple[str, Box]]:
    return {(detected.class_name, tuple(round(edge, 2) for edge in detected.box_xyxy)) for detected in objects}  # type: ignore[misc]


# --- YOLOX


@pytest.mark.parametrize("decoded", [False, True])
def test_yolox_finds_each_square_in_its_place_and_colour(tmp_path: Path, decoded: bool) -> None:
    detector = load(write_yolox(tmp_path / "d.onnx", decoded=decoded), minimum_score=0.9)
    assert detector.layout == "yolox"
    frame = squares(SIDE, SIDE, (BLUE, (8, 0, 16, 8)), (GREEN, (32, 16, 48, 32)), (RED, (0, 32, 32, 64)))
    objects = detector.detect(frame)
    at_least = {(BLUE, (8, 0, 16, 8)), (GREEN, (32, 16, 48, 32)), (RED, (0, 32, 32, 64))}
    assert at_least <= found(objects)
    assert all(detected.score == pytest.approx(1) for detected in objects)
    assert {detected.class_name: detected.class_id for detected in objects} == {BLUE: 0, GREEN: 16, RED: 56}


def test_a_frame_of_another_shape_gets_boxes_in_its_own_pixels(tmp_path: Path) -> None:
    detector = load(write_yolox(tmp_path / "d.onnx"), minimum_score=0.9)
    frame = squares(10 * SIDE, 5 * SIDE, (GREEN, (320, 160, 480, 320)))  # the lower half of the picture is padding
    assert (GREEN, (320, 160, 480, 320)) in found(detector.detect(frame))


def test_the_minimum_score_decides_what_is_left_out(tmp_path: Path) -> None:
    path = write_yolox(tmp_path / "d.onnx")
    dim = np.full((SIDE, SIDE, 3), (100, 0, 0), np.uint8)  # a score of 0.39 everywhere
    assert not load(path, minimum_score=0.5).detect(dim)
    objects = load(path).detect(dim)
    assert len(objects) == len(cells()), "neighbouring cells do not overlap enough to be one object"
    assert objects[0].score == pytest.approx(100 / 255, abs=1e-4)


@pytest.mark.parametrize("write", [write_yolox, write_boxes_scores_labels])
def test_every_class_has_its_highest_score_also_below_the_minimum(tmp_path: Path, write: Callable[..., Path]) -> None:
    detector = load(write(tmp_path / "d.onnx"), minimum_score=0.9, class_names=COCO_CLASSES)
    frame = squares(SIDE, SIDE, (BLUE, (0, 0, 32, 32))) // 2
    detections = detector.detections(frame)
    assert detections.objects == detector.detect(frame) == ()
    assert detections.class_scores.complete
    scores = detections.class_scores.scores
    assert scores.keys() == set(COCO_CLASSES)
    assert 0.1 < scores[BLUE] < 0.9
    assert scores[GREEN] == scores["zebra"] == 0


@given(columns=st.integers(1, 300), rows=st.integers(1, 300), width=st.integers(32, 200), height=st.integers(32, 200))
@settings(max_examples=60)
def test_a_letterbox_keeps_the_frame_at_the_top_left_and_its_scale_leads_there_and_back(
    columns: int, rows: int, width: int, height: int
) -> None:
    frame = np.full((rows, columns, 3), 255, np.uint8)
    picture, (across, down) = letterbox(frame, width, height)
    assert picture.shape == (height, width, 3)
    assert (across, down) == letterbox_scale(columns, rows, width, height)
    right, bottom = columns * across, rows * down
    assert right == pytest.approx(round(right))
    assert bottom == pytest.approx(round(bottom))
    white = (picture == 255).all(axis=2)
    assert white[: round(bottom), : round(right)].all()
    assert white.sum() == round(bottom) * round(right), "all else is padding"
    assert min(width - right, height - bottom) < 1 + 1e-9, "as large as it goes"


@given(data=st.data(), columns=st.integers(8, 2000), rows=st.integers(8, 2000))
@settings(max_examples=60)
def test_a_box_survives_the_letterbox_there_and_the_decoding_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, columns: int, rows: int
) -> None:
    left, right = sorted(data.draw(st.tuples(*[st.floats(0, columns)] * 2)))
    top, bottom = sorted(data.draw(st.tuples(*[st.floats(0, rows)] * 2)))
    detector = _yolox()
    layout = detector._layout
    across, down = letterbox_scale(columns, rows, SIDE, SIDE)
    inside = np.array([left * across, top * down, right * across, bottom * down])
    stride, cell = 8, np.array([3, 5])  # any cell may answer for any box
    place = cell[1] * (SIDE // stride) + cell[0]
    output = np.zeros((1, len(cells()), 85), np.float32)
    output[0, place, :2] = (inside[:2] + inside[2:]) / 2 / stride - cell
    output[0, place, 2:4] = np.log(np.maximum(inside[2:] - inside[:2], 1e-6) / stride)
    output[0, place, 4] = output[0, place, 5 + 7] = 1
    candidates = layout.candidates({"output": output}, columns, rows)
    np.testing.assert_allclose(candidates.boxes_xyxy[place], [left, top, right, bottom], atol=2e-3 * max(columns, rows))
    assert (candidates.scores[place], candidates.class_ids[place]) == (1, 7)


_LOADED: list[Detector] = []


def _yolox() -> Detector:
    """One detector for all examples of a property."""
    if not _LOADED:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            _LOADED.append(load(write_yolox(Path(folder) / "d.onnx")))
    return _LOADED[0]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e30])
def test_boxes_that_are_no_boxes_are_left_out_and_the_others_stay(tmp_path: Path, wrong: float) -> None:
    regression = np.tile(np.array([0.5, 0.5, 0.0, 0.0], np.float32), (len(cells()), 1))
    regression[::3] = wrong
    detector = load(write_yolox(tmp_path / "d.onnx", regression=regression))
    objects = detector.detect(np.full((SIDE, SIDE, 3), 255, np.uint8))
    assert objects
    for detected in objects:
        left, top, right, bottom = detected.box_xyxy
        assert 0 <= left < right <= SIDE
        assert 0 <= top < bottom <= SIDE


# --- boxes, scores and labels


@pytest.mark.parametrize("options", [{}, {"fractions": True}, {"frame_size": True}, {"batch": False}])
def test_graphs_that_end_in_boxes_scores_and_labels_find_the_same(tmp_path: Path, options: dict[str, bool]) -> None:
    detector = load(
        write_boxes_scores_labels(tmp_path / "d.onnx", **options), minimum_score=0.9, class_names=COCO_CLASSES
    )
    assert detector.layout == "boxes-scores-labels"
    frame = squares(2 * SIDE, 4 * SIDE, (BLUE, (16, 0, 32, 32)), (GREEN, (64, 64, 96, 128)), (RED, (0, 128, 64, 256)))
    expected = {(BLUE, (16, 0, 32, 32)), (GREEN, (64, 64, 96, 128)), (RED, (0, 128, 64, 256))}
    assert expected <= found(detector.detect(frame))


def test_objects_come_surest_first_and_no_more_than_the_limit(tmp_path: Path) -> None:
    path = write_boxes_scores_labels(tmp_path / "d.onnx")
    detector = load(path, minimum_score=0.0, class_names=COCO_CLASSES)
    random = np.random.default_rng(0)
    outputs = {
        "boxes": np.tile(np.array([1, 1, 50, 50], np.float32), (1, 800, 1)),
        "scores": random.random((1, 800)).astype(np.float32),
        "labels": random.integers(0, 80, (1, 800)),
    }
    detector._graph.run = lambda inputs: outputs  # type: ignore[method-assign]
    objects = detector.detect(np.zeros((SIDE, SIDE, 3), np.uint8))
    assert len(objects) == MAX_OBJECTS == 500
    scores = [detected.score for detected in objects]
    assert scores == sorted(outputs["scores"][0].tolist(), reverse=True)[:500]


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"scores": [math.nan, 0.9]}, 1),
        ({"scores": [7.0, 0.9]}, 2),
        ({"labels": [80, 0]}, 1),
        ({"labels": [-1, 0]}, 1),
        ({"boxes": [[9, 9, 1, 1], [0, 0, 9, 9]]}, 1),
        ({"boxes": [[-90, -90, -1, -1], [-5, -5, 900, 900]]}, 1),
        ({"boxes": [[math.nan] * 4, [5, 5, 5, 9]]}, 0),
    ],
)
def test_what_is_no_object_is_left_out(tmp_path: Path, change: dict[str, Any], kept: int) -> None:
    detector = load(write_boxes_scores_labels(tmp_path / "d.onnx"), class_names=COCO_CLASSES)
    outputs = {"boxes": [[0, 0, 9, 9], [0, 0, 9, 9]], "scores": [0.9, 0.8], "labels": [0, 1], **change}
    detector._graph.run = lambda inputs: {  # type: ignore[method-assign]
        "boxes": np.array(outputs["boxes"], np.float32),
        "scores": np.array(outputs["scores"], np.float32),
        "labels": np.array(outputs["labels"], np.int64),
    }
    objects = detector.detect(np.zeros((SIDE, SIDE, 3), np.uint8))
    assert len(objects) == kept
    for detected in objects:
        assert 0 <= detected.score <= 1
        assert 0 <= min(detected.box_xyxy) < max(detected.box_xyxy) <= SIDE


def test_answers_that_do_not_go_together_are_an_engine_error(tmp_path: Path) -> None:
    detector = load(write_boxes_scores_labels(tmp_path / "d.onnx"), class_names=COCO_CLASSES)
    detector._graph.run = lambda inputs: {  # type: ignore[method-assign]
        "boxes": np.zeros((3, 4)), "scores": np.zeros(3), "labels": np.zeros(2),
    }  # fmt: skip
    with pytest.raises(EngineError, match=r"boxes \[3, 4\], scores \[3\], labels \[2\], which do not go together"):
        detector.detect(np.zeros((SIDE, SIDE, 3), np.uint8))


# --- names


def test_names_beside_the_graph_go_before_those_in_it_and_are_brought_to_one_spelling(tmp_path: Path) -> None:
    path = write_boxes_scores_labels(tmp_path / "d.onnx", names="['a', 'b']")
    assert load(path).class_names == ("a", "b")
    path.with_suffix(".txt").write_bytes(b"\xef\xbb\xbfTV_Monitor\ntvmonitor\nDining-Table\n")  # as some editors do
    assert load(path).class_names == ("television", "television", "dining table")
    assert load(path, class_names=["pottedplant"]).class_names == ("potted plant",)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("trafficlight", "traffic light"),
        ("Snow_Board", "snowboard"),
        ("hot-dog", "hot dog"),
        ("cellphone", "cell phone"),
        ("hairdryer", "hair drier"),
        ("coffee-table", "coffee table"),
    ],
)
def test_a_class_has_one_name_however_it_is_joined(written: str, name: str) -> None:
    assert normalise(written) == name


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
    ],
)
def test_names_are_read_however_they_are_written(tmp_path: Path, written: str) -> None:
    path = write_boxes_scores_labels(tmp_path / "d.onnx", names=written)
    assert load(path).class_names == ("cat", "", "television")
    path = write_boxes_scores_labels(tmp_path / "e.onnx")
    path.with_suffix(".txt").write_bytes(b"\xef\xbb\xbf" + written.encode())
    assert load(path).class_names == ("cat", "", "television")


def test_names_that_begin_with_a_number_are_names() -> None:
    assert parse_class_names("7 up\n3d printer\n") == ["7 up", "3d printer"]


@pytest.mark.parametrize(
    "written",
    ['["cat", null]', "{'cat', 'dog'}", '{"0": "cat", "1": 5}', '{"cat": "feline"}', "0 cat\n0 dog", "[cat]",
     "{[]: 1}", "{{}: 'a'}", "(" * 5000, "[" * 400, "(0)", "{-1: 'cat'}"],
)  # fmt: skip
def test_metadata_that_is_no_list_of_names_is_refused_and_not_passed_over(tmp_path: Path, written: str) -> None:
    path = write_yolox(tmp_path / "d.onnx", names=written)
    with pytest.raises(DetectorError, match=r"the names of its classes in its metadata: .*; write their names"):
        load(path)
    path.with_suffix(".txt").write_text("\n".join(COCO_CLASSES))
    assert load(path).class_names == COCO_CLASSES


def test_classes_that_name_nothing_are_left_out(tmp_path: Path) -> None:
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
def test_a_list_of_names_that_does_not_fit_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = write_yolox(tmp_path / "d.onnx")
    path.with_suffix(".txt").write_bytes(content)
    with pytest.raises(DetectorError, match=sentence):
        load(path)


def test_labels_without_names_are_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(DetectorError, match=r"its classes are not known; write their names.*into .*d\.txt"):
        load(write_boxes_scores_labels(tmp_path / "d.onnx"))


# --- what is no detector


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
def test_another_layout_is_refused_with_what_was_found(
    tmp_path: Path, inputs: dict[str, list[int]], outputs: dict[str, list[int]]
) -> None:
    path = write_other(tmp_path / "d.onnx", inputs, outputs)
    with pytest.raises(DetectorError) as caught:
        load(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    for name, shape in (inputs | outputs).items():
        assert f"{name} float32 {shape}" in sentence
    assert "YOLOX" in sentence
    assert "boxes, scores and labels" in sentence


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DetectorError, match=r"absent\.onnx: there is no such detector"):
        load(tmp_path / "absent.onnx")


def test_a_broken_file_is_refused_by_name(tmp_path: Path) -> None:
    path = write_yolox(tmp_path / "d.onnx")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(EngineError, match=r"d\.onnx cannot be loaded"):
        load(path)


@pytest.mark.parametrize("score", [-0.1, 1.1, math.nan])
def test_a_minimum_score_that_is_no_share_is_refused(tmp_path: Path, score: float) -> None:
    with pytest.raises(ValueError, match="minimum_score"):
        load(write_yolox(tmp_path / "d.onnx"), minimum_score=score)


@pytest.mark.parametrize("frame", [np.zeros((0, 5, 3), np.uint8), np.zeros((5, 5), np.uint8), np.zeros((5, 5, 3))])
def test_what_is_no_frame_is_refused(tmp_path: Path, frame: np.ndarray) -> None:
    with pytest.raises(ValueError, match="a frame must be"):
        load(write_yolox(tmp_path / "d.onnx")).detect(frame)


# --- a published detector on photographs


@pytest.fixture(scope="module")
def yolox_nano(data_dir: Path) -> Path:
    return data_dir / "detectors" / "yolox_nano.onnx"


def test_yolox_nano_gives_what_its_graph_gives_decoded_by_hand(yolox_nano: Path, data_dir: Path) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(yolox_nano), providers=["CPUExecutionProvider"])
    detector, total = load(yolox_nano, minimum_score=0.5), 0
    for path in sorted((data_dir / "coco_mini" / "images").iterdir())[:4]:
        frame = cv2.imread(str(path))
        assert frame is not None
        rows, columns = frame.shape[:2]
        scale = min(416 / rows, 416 / columns)
        picture = np.full((416, 416, 3), 114, np.uint8)
        small = cv2.resize(frame, (int(columns * scale), int(rows * scale)), interpolation=cv2.INTER_LINEAR)
        picture[: small.shape[0], : small.shape[1]] = small
        (output,) = session.run(None, {"images": picture.transpose(2, 0, 1)[None].astype(np.float32)})
        expected = []
        place = 0
        for stride in (8, 16, 32):
            for y in range(416 // stride):
                for x in range(416 // stride):
                    row = output[0, place]
                    class_id = int(row[5:].argmax())
                    if row[4] * row[5 + class_id] >= 0.5:
                        centre = (row[0] + x) * stride, (row[1] + y) * stride
                        size = math.exp(row[2]) * stride, math.exp(row[3]) * stride
                        box = [(c + s * k / 2) / scale for k in (-1, 1) for c, s in zip(centre, size, strict=True)]
                        expected.append((class_id, float(row[4] * row[5 + class_id]), box))
                    place += 1
        objects = detector.detect(frame)
        total += len(objects)
        for detected in objects:
            clipped = [
                [*np.clip(box, 0, [columns, rows, columns, rows])]
                for class_id, score, box in expected
                if class_id == detected.class_id and score == pytest.approx(detected.score, abs=1e-5)
            ]
            assert any(np.allclose(box, detected.box_xyxy, atol=0.02 * max(rows, columns) / 10) for box in clipped)
        kept = [(detected.class_id, detected.box_xyxy) for detected in objects]
        for class_id, _, box in expected:  # what was left out overlaps something that was kept
            assert any(k == class_id and plain_iou(kept_box, box) > 0.4 for k, kept_box in kept)
    assert total > 5
