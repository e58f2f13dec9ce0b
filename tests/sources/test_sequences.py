"""Sequences in ACVR's layout as a source of frames: with their objects, and not mistaken for folders of photographs."""

import json

import cv2
import numpy as np
import pytest

from smart_caption_ros.sources import open_source
from smart_caption_ros.sources.acvr import AcvrSequences
from smart_caption_ros.sources.image_folder import ImageFolder
from smart_caption_ros.sources.sequences import Sequences, sample_sequences_path
from tests.sources.acvr_sequence import write_rooms


@pytest.fixture
def root(tmp_path):
    write_rooms(tmp_path / "rooms")
    return tmp_path / "rooms"


def test_frames_of_all_sequences_come_in_order_with_their_objects_and_without_masks(root):
    source = open_source(root)
    assert isinstance(source, Sequences)
    assert source.knows_objects
    frames = list(source)
    truth = list(AcvrSequences(root).frames())
    assert len(frames) == source.known_length == 16
    assert [frame.index for frame in frames] == list(range(16))
    for frame, known in zip(frames, truth, strict=True):
        assert frame.name == known.name
        assert frame.objects == known.objects
        np.testing.assert_array_equal(frame.image_bgr, known.read_image())
    assert source.address_of(frames[9]) == f"{root}#000001/000003"
    assert source.description == f"sequences {root} (2 with 16 frames)"


def test_every_nth_frame_reads_no_frame_between(root):
    for broken in (root / "000000").glob("rgb_00000[3-9].png"):
        broken.write_bytes(b"no picture")
    source = open_source(root)
    assert [frame.index for frame in source.every(8)] == [0, 8]
    assert not source.skipped_frames


def test_a_frame_that_turns_out_damaged_is_skipped(root):
    image = root / "000000" / "rgb_000003.png"
    image.write_bytes(image.read_bytes()[:200])
    source = open_source(root)
    assert len(list(source)) == 15
    assert [(skipped.name, skipped.index) for skipped in source.skipped_frames] == [("000000/000003", 1)]


@pytest.mark.parametrize("labels", [{"cat.png": "cat"}, {"cat": {}}, {"0": "cat"}, {}, ["cat"]])
def test_a_folder_of_photographs_with_other_labels_stays_one(tmp_path, labels):
    cv2.imwrite(str(tmp_path / "cat.png"), np.zeros((8, 8, 3), np.uint8))
    (tmp_path / "labels.json").write_text(json.dumps(labels))
    assert isinstance(open_source(tmp_path), ImageFolder)


def test_a_folder_of_photographs_beside_sequences_stays_one(root):
    cv2.imwrite(str(root / "cover.jpg"), np.zeros((8, 8, 3), np.uint8))
    source = open_source(root)
    assert isinstance(source, ImageFolder)
    assert not source.knows_objects
    assert [frame.objects for frame in source] == [None]


def test_every_sequence_in_the_package_is_whole():
    source = open_source("sample:household")
    frames = list(source)
    assert len(frames) == source.known_length
    assert not source.skipped_frames
    assert not AcvrSequences(sample_sequences_path()).issues
    assert all(frame.image_bgr.shape == (360, 480, 3) for frame in frames)
    assert sum(bool(frame.objects) for frame in frames) > len(frames) / 2
    captions = json.loads((sample_sequences_path() / "captions.json").read_text())
    assert [image["file_name"] for image in captions["images"]] == [f"{frame.name}.jpg" for frame in frames]
    assert len(captions["annotations"]) == 5 * len(frames)
