"""The folder of rendered sequences: masks and labels in ACVR's format, captions, frames still to be rendered."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simulation.household.dataset_folder import DatasetFolder
from simulation.household.errors import HouseholdError
from simulation.household.generate import generate, write_captions
from simulation.household.ground_truth import (
    LABELLED_CLASSES,
    MIN_VISIBLE_PIXELS,
    acvr_labels,
    label_mask,
    labelled_ids,
    visible_extents,
)
from simulation.household.layout.random_scene import random_scene
from simulation.household.sequences import RenderSettings, plan_sequence
from smart_caption_ros.sources.acvr import AcvrSequences
from tests.simulation.household.captioned_frames import render_instances
from training.data.coco import read_captions

instance_maps = hnp.arrays(np.uint16, (24, 32), elements=st.sampled_from([0, 0, 1, 2, 7, 300]))


@settings(max_examples=20)
@given(instances=instance_maps)
def test_boxes_and_counts_are_those_of_the_pixels(instances) -> None:
    visible = visible_extents(instances)
    for number in set(np.unique(instances)) - {0}:
        rows, columns = np.nonzero(instances == number)
        if len(rows) < MIN_VISIBLE_PIXELS:
            assert number not in visible
            continue
        extent = visible[int(number)]
        assert (extent.left, extent.top, extent.right, extent.bottom) == (
            columns.min(),
            rows.min(),
            columns.max(),
            rows.max(),
        )
        assert extent.pixels == len(rows)


@settings(max_examples=20)
@given(instances=instance_maps)
def test_mask_holds_the_labelled_objects_and_nothing_else(instances) -> None:
    visible, wanted = visible_extents(instances), {1, 300}
    mask = label_mask(instances, visible, wanted)
    assert mask.dtype == np.uint16
    assert set(np.unique(mask)) - {0} == wanted & visible.keys()
    for number in wanted & visible.keys():
        assert np.array_equal(mask == number, instances == number)
    assert label_mask(instances, visible, {1, 2}).dtype == np.uint8


def test_labels_name_each_labelled_object_by_the_same_number_in_every_frame() -> None:
    scene = random_scene(np.random.default_rng(0), "kitchen", day=True)
    table = next(placed.id for placed in scene.objects if placed.mesh.class_name == "dining table")
    window = next(placed.id for placed in scene.objects if placed.mesh.class_name == "window")
    instances = np.zeros((24, 32), np.uint16)
    instances[2:10, 3:20], instances[15:20, 0:10] = table, window
    frames = {0: visible_extents(instances), 1: visible_extents(instances[:, ::-1]), 2: {}}
    document = acvr_labels(frames, scene.objects, {frame: f"{frame}.png" for frame in frames})
    assert list(document) == ["000000", "000001", "000002"]
    key = f"{table:06d}"
    assert document["000000"][key] == {
        "class": "dining table",
        "mask_id": table,
        "bounding_box": [3, 2, 19, 9],
        "num_pixels": 136,
    }
    assert document["000001"][key]["bounding_box"] == [12, 2, 28, 9]
    assert f"{window:06d}" not in document["000000"]
    assert document["000002"] == {"_metadata": {"mask_name": "2.png", "mask_channel": 0}}
    assert window not in labelled_ids(scene.objects)


SETTINGS = RenderSettings(frames=3, width=160, height=120, step=1.0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished data set of one sequence, made without Blender."""
    dataset = DatasetFolder(tmp_path_factory.mktemp("household"))
    dataset.open(SETTINGS)
    sequence = plan_sequence(SETTINGS, 0)
    for frame, pose in enumerate(sequence.poses):
        instances = render_instances(sequence.scene, SETTINGS.camera, pose)
        dataset.write_frame(
            sequence, frame, cv2.cvtColor(np.minimum(instances, 255).astype(np.uint8), cv2.COLOR_GRAY2BGR), instances
        )
    dataset.finish_sequence(sequence, SETTINGS.frames)
    write_captions(dataset, SETTINGS, 1)
    return dataset.folder


def test_labels_agree_with_the_masks(finished: Path) -> None:
    document = json.loads((finished / "000000" / "labels.json").read_text())
    assert list(document) == ["000000", "000001", "000002"]
    objects = 0
    for frame, entry in document.items():
        mask = cv2.imread(str(finished / "000000" / entry["_metadata"]["mask_name"]), cv2.IMREAD_UNCHANGED)
        assert mask.shape == (120, 160)
        assert (finished / "000000" / f"{frame}.jpg").exists()
        listed = {key: value for key, value in entry.items() if not key.startswith("_")}
        assert {value["mask_id"] for value in listed.values()} == set(np.unique(mask)) - {0}
        for value in listed.values():
            rows, columns = np.nonzero(mask == value["mask_id"])
            assert value["bounding_box"] == [columns.min(), rows.min(), columns.max(), rows.max()]
            assert value["num_pixels"] == len(rows)
            assert value["class"] in LABELLED_CLASSES
            objects += 1
    assert objects > 3


def test_acvr_reader_finds_the_same_objects_and_no_issue(finished: Path) -> None:
    source = AcvrSequences(finished)
    frames = list(source.frames())
    document = json.loads((finished / "000000" / "labels.json").read_text())
    assert [frame.name for frame in frames] == [f"000000/{key}" for key in document]
    for frame, entry in zip(frames, document.values(), strict=True):
        listed = {int(key): value["class"] for key, value in entry.items() if not key.startswith("_")}
        assert {thing.instance_id: thing.class_name for thing in frame.objects} == listed
    assert not source.issues


def test_captions_are_in_cocos_format(finished: Path) -> None:
    captions = read_captions(finished / "captions.json")
    assert len(captions.captions) == 3
    assert all(len(sentences) == 5 for sentences in captions.captions.values())
    assert all((finished / name).exists() for name in captions.file_names.values())


def test_finished_data_set_is_not_rendered_again(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulation.household.generate.require_bpy", lambda: pytest.fail("nothing is to be rendered"))
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*.jpg")}
    report = generate(finished, SETTINGS, 1, processes=1, quiet=True)
    assert (report.rendered, report.skipped) == (0, 3)
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*.jpg")} == before


def test_only_frames_without_a_record_are_missing(tmp_path: Path) -> None:
    dataset = DatasetFolder(tmp_path / "root")
    dataset.open(SETTINGS)
    assert dataset.missing_frames(0, 3) == [0, 1, 2]
    sequence = plan_sequence(SETTINGS, 0)
    dataset.write_frame(sequence, 1, np.zeros((120, 160, 3), np.uint8), np.zeros((120, 160), np.uint16))
    assert dataset.missing_frames(0, 3) == [0, 2]
    # As if the run was killed between image and record.
    (dataset.sequence(0) / ".frames" / "000001.json").unlink()
    assert dataset.missing_frames(0, 3) == [0, 1, 2]
    assert not list(tmp_path.rglob("*.unfinished"))


def test_folder_made_with_other_settings_is_refused(finished: Path) -> None:
    with pytest.raises(HouseholdError, match="seed 0, not 1; samples 16, not 4"):
        DatasetFolder(finished).open(replace(SETTINGS, seed=1, samples=4))


def test_damaged_files_are_named(finished: Path, tmp_path: Path) -> None:
    dataset = DatasetFolder(Path(shutil.copytree(finished, tmp_path / "root")))
    for name in ("household.json", "000000/visible.json"):
        (dataset.folder / name).write_text("{")
    with pytest.raises(HouseholdError, match=r"household\.json is not JSON"):
        dataset.open(SETTINGS)
    with pytest.raises(HouseholdError, match=r"visible\.json is not JSON .*: delete the sequence's folder"):
        dataset.visible_extents(0)


def test_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(HouseholdError, match="is not empty"):
        DatasetFolder(tmp_path).open(SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]


def test_sequence_whose_tasks_end_at_the_same_moment_is_finished_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = RenderSettings(seed=3, frames=4, width=64, height=48, samples=1, step=0.5)

    def render_at_once(
        folder: Path, settings: RenderSettings, missing: dict[int, list[int]], processes: int
    ) -> Iterator[tuple[int, int]]:
        sequence, grey = plan_sequence(settings, 0), np.full((48, 64, 3), 90, np.uint8)
        for frame in missing[0]:
            instances = render_instances(sequence.scene, settings.camera, sequence.poses[frame])
            DatasetFolder(folder).write_frame(sequence, frame, grey, instances)
        yield 0, 2
        yield 0, 2

    monkeypatch.setattr("simulation.household.generate.require_bpy", lambda: None)
    monkeypatch.setattr("simulation.household.generate._render_missing", render_at_once)
    report = generate(tmp_path / "root", settings, 1, processes=2, quiet=True)
    assert (report.rendered, report.skipped) == (4, 0)
    labels = json.loads((tmp_path / "root" / "000000" / "labels.json").read_text())
    assert sorted(labels) == [f"{frame:06d}" for frame in range(4)]
