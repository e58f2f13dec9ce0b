"""ACVR sequences: what a frame holds, and everything that can be amiss in a root."""

import json

import cv2
import numpy as np
import pytest

from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.acvr import AcvrSequences
from smart_caption_ros.sources.ground_truth import DatasetIssue
from tests.sources.acvr_sequence import Drawn, write_rooms, write_sequence

CHAIR = Drawn("chair", 15, 1, (10, 20, 39, 69))
CUP = Drawn("cup", 16, 2, (60, 60, 69, 69))


def frames_of(root, every=1):
    """The frames, and how often what was amiss."""
    data = AcvrSequences(root)
    frames = list(data.frames(every))
    return frames, {name: issue["count"] for name, issue in data.issues.to_json().items()}


def oddities_after(root, change):
    """A sequence of two frames with a chair and a cup each, whose labels were changed."""
    labels = write_sequence(root / "000000", {0: [CHAIR, CUP], 1: [CHAIR, CUP]})
    change(labels)
    (root / "000000" / "labels.json").write_text(json.dumps(labels))
    return frames_of(root)


def test_a_frame_has_its_objects_with_exclusive_boxes_and_their_share_of_the_image(tmp_path):
    write_sequence(tmp_path / "000000", {0: [CHAIR, CUP]})
    (frame,), issues = frames_of(tmp_path)
    assert not issues
    assert (frame.name, frame.width, frame.height) == ("000000/000000", 100, 100)
    chair, cup = frame.objects
    assert (chair.class_name, chair.instance_id, chair.box_xyxy) == ("chair", 15, (10, 20, 40, 70))
    assert chair.area_share == 30 * 50 / 10_000
    assert cup.area_share == 0.01
    assert frame.read_image().shape == (100, 100, 3)


@pytest.mark.parametrize(("bits", "mask_id"), [(8, 255), (16, 255), (16, 256), (16, 65535)])
def test_boxes_come_from_the_mask_where_labels_have_none(tmp_path, bits, mask_id):
    drawn = Drawn("bottle", 3, mask_id, CHAIR.box)
    write_sequence(tmp_path / "000000", {0: [drawn, CUP]}, mask_bits=bits, with_boxes=False)
    (frame,), issues = frames_of(tmp_path)
    assert not issues
    assert [thing.box_xyxy for thing in frame.objects] == [(10, 20, 40, 70), (60, 60, 70, 70)]


def test_unknown_classes_and_background_are_no_objects_and_are_counted(tmp_path):
    def change(labels):
        labels["000000"]["000015"]["class"] = "unicorn"
        labels["000000"]["000016"]["class"] = "none"
        labels["000001"]["000016"]["class"] = "tv"
        del labels["000001"]["000015"]["class"]

    frames, issues = oddities_after(tmp_path, change)
    assert [[thing.class_name for thing in frame.objects] for frame in frames] == [[], ["television"]]
    assert issues == {DatasetIssue.UNKNOWN_CLASS.value: 2, DatasetIssue.BACKGROUND.value: 1}


@pytest.mark.parametrize(
    ("change", "boxes", "expected"),
    [
        (lambda chair: chair.update(bounding_box=[90, 90, 120, 120]), 2, DatasetIssue.BOX_CLIPPED),
        (lambda chair: chair.update(bounding_box=[-5, 0, 3, 3]), 2, DatasetIssue.BOX_CLIPPED),
        (lambda chair: chair.update(bounding_box=[100, 100, 120, 120]), 1, DatasetIssue.BOX_OUTSIDE),
        (lambda chair: chair.update(bounding_box=[50, 50, 20, 20]), 1, DatasetIssue.BOX_OUTSIDE),
        (lambda chair: chair.update(bounding_box=[1, 2, 3]), 2, DatasetIssue.MALFORMED_OBJECT),
        (lambda chair: chair.update(bounding_box="1 2 3 4"), 2, DatasetIssue.MALFORMED_OBJECT),
        (lambda chair: chair.update(bounding_box=[1, 2, 3, float("nan")]), 2, DatasetIssue.MALFORMED_OBJECT),
        (lambda chair: (chair.pop("bounding_box"), chair.pop("mask_id")), 1, DatasetIssue.OBJECT_WITHOUT_PLACE),
        (lambda chair: (chair.pop("bounding_box"), chair.update(mask_id=77)), 1, DatasetIssue.OBJECT_WITHOUT_PLACE),
        (lambda chair: (chair.pop("bounding_box"), chair.update(mask_id=0)), 1, DatasetIssue.OBJECT_WITHOUT_PLACE),
        (lambda chair: (chair.pop("bounding_box"), chair.update(mask_id="one")), 1, DatasetIssue.OBJECT_WITHOUT_PLACE),
    ],
)
def test_boxes_that_are_amiss_are_cut_or_taken_from_the_mask_or_left_out(tmp_path, change, boxes, expected):
    frames, issues = oddities_after(tmp_path, lambda labels: change(labels["000000"]["000015"]))
    assert [len(frame.objects) for frame in frames] == [boxes, 2]
    assert issues == {expected.value: 1}
    for thing in frames[0].objects:
        left, top, right, bottom = thing.box_xyxy
        assert 0 <= left < right <= 100
        assert 0 <= top < bottom <= 100
        assert 0 < thing.area_share <= 1


@pytest.mark.parametrize(
    ("change", "frames_left", "objects", "expected"),
    [
        (lambda labels: labels.update({"000001": [1]}), 1, 2, DatasetIssue.MALFORMED_FRAME),
        (lambda labels: labels.update({"first": {}}), 2, 4, DatasetIssue.MALFORMED_FRAME),
        (lambda labels: labels.update({"9" * 5000: {}}), 2, 4, DatasetIssue.MALFORMED_FRAME),
        (lambda labels: labels.update({"1": {}}), 2, 4, DatasetIssue.REPEATED_FRAME),
        (lambda labels: labels["000001"].pop("_metadata"), 2, 2, DatasetIssue.OBJECTS_WITHOUT_METADATA),
        (lambda labels: labels["000001"].update({"x": {}}), 2, 4, DatasetIssue.MALFORMED_OBJECT),
        (lambda labels: labels["000001"].update({"9" * 5000: {}}), 2, 4, DatasetIssue.MALFORMED_OBJECT),
        (lambda labels: labels["000001"].update({"000015": "chair"}), 2, 3, DatasetIssue.MALFORMED_OBJECT),
        (lambda labels: labels.pop("000001"), 1, 2, DatasetIssue.IMAGE_WITHOUT_FRAME),
        (lambda labels: labels.update({"000007": {}}), 2, 4, DatasetIssue.FRAME_WITHOUT_IMAGE),
        (lambda labels: labels.update(_metadata={"camera": "1 m"}), 2, 4, None),
    ],
)
def test_records_that_are_amiss_are_left_out_and_counted(tmp_path, change, frames_left, objects, expected):
    # Without masks: the mask of a frame that is no longer labelled would count as a second image of its number.
    labels = write_sequence(tmp_path / "000000", {0: [CHAIR, CUP], 1: [CHAIR, CUP]}, with_masks=False)
    for record in labels.values():
        record["_metadata"] = {}
    change(labels)
    (tmp_path / "000000" / "labels.json").write_text(json.dumps(labels))
    frames, issues = frames_of(tmp_path)
    assert (len(frames), sum(len(frame.objects) for frame in frames)) == (frames_left, objects)
    assert issues == ({expected.value: 1} if expected else {})


def test_a_mask_of_another_size_than_the_image_costs_the_frame(tmp_path):
    write_sequence(tmp_path / "000000", {0: [CHAIR], 1: [CHAIR]})
    cv2.imwrite(str(tmp_path / "000000" / "1.png"), np.ones((50, 100), np.uint8))
    frames, issues = frames_of(tmp_path)
    assert [frame.frame for frame in frames] == ["000000"]
    assert issues == {DatasetIssue.MASK_OF_ANOTHER_SIZE.value: 1}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, DatasetIssue.MISSING_MASK),
        (b"no image", DatasetIssue.UNUSABLE_MASK),
        (cv2.imencode(".png", np.ones((100, 100, 3), np.uint8))[1].tobytes(), DatasetIssue.UNUSABLE_MASK),
        (cv2.imencode(".png", np.random.default_rng(0).integers(0, 9, (100, 100), np.uint8))[1].tobytes()[:3000],
         DatasetIssue.UNUSABLE_MASK),
    ],
)  # fmt: skip
def test_without_a_usable_mask_objects_with_boxes_remain(tmp_path, content, expected):
    labels = write_sequence(tmp_path / "000000", {0: [CHAIR, CUP]})
    del labels["000000"]["000016"]["bounding_box"]
    (tmp_path / "000000" / "labels.json").write_text(json.dumps(labels))
    mask = tmp_path / "000000" / "0.png"
    mask.unlink()
    if content is not None:
        mask.write_bytes(content)
    (frame,), issues = frames_of(tmp_path)
    assert [thing.class_name for thing in frame.objects] == ["chair"]
    assert issues == {expected.value: 1, DatasetIssue.OBJECT_WITHOUT_PLACE.value: 1}


def test_images_that_are_damaged_or_missing_or_stand_for_nothing_are_counted(tmp_path):
    write_sequence(tmp_path / "000000", {number: [CHAIR] for number in range(4)})
    folder = tmp_path / "000000"
    (folder / "rgb_000001.png").write_bytes(b"no image")
    (folder / "rgb_000002.png").unlink()
    for name in ("rgb_000009.png", "cover.png", "rgb_3.png"):
        (folder / name).write_bytes((folder / "rgb_000000.png").read_bytes())
    frames, issues = frames_of(tmp_path)
    assert [frame.frame for frame in frames] == ["000000", "000003"]
    assert issues == {
        DatasetIssue.UNREADABLE_IMAGE.value: 1,
        DatasetIssue.FRAME_WITHOUT_IMAGE.value: 1,
        DatasetIssue.IMAGE_WITHOUT_FRAME.value: 1,
        DatasetIssue.IMAGE_WITHOUT_NUMBER.value: 1,
        DatasetIssue.REPEATED_IMAGE.value: 1,
    }


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", r"labels\.json is not JSON: Expecting property name .*repair it or take .* away"),
        (b"[]", "is not a JSON object with a record a frame; repair it or take .* away"),
        (b'{"0": ' + 100_000 * b"[", "is not JSON"),
        (b"\xff\xfe{", "is not JSON"),
    ],
)
def test_labels_that_are_no_json_are_refused_before_any_frame_is_read(tmp_path, content, sentence):
    write_rooms(tmp_path)
    (tmp_path / "000001" / "labels.json").write_bytes(content)
    with pytest.raises(SourceError, match=sentence):
        AcvrSequences(tmp_path)


def test_a_root_without_sequences_is_refused(tmp_path):
    with pytest.raises(SourceError, match=r"nowhere: no such folder; give the one that holds <sequence>/labels\.json"):
        AcvrSequences(tmp_path / "nowhere")
    (tmp_path / "000000").mkdir()
    with pytest.raises(SourceError, match=r"holds no sequence.*\(1 folders there have none\)"):
        AcvrSequences(tmp_path)
