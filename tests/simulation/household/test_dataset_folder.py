"""The folder of rendered sequences: labels, captions, and which frames are still to be rendered."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from simulation.household.dataset_folder import DatasetFolder
from simulation.household.errors import HouseholdError
from simulation.household.generate import generate, write_captions
from simulation.household.ground_truth import LABELLED_CLASSES
from simulation.household.sequences import RenderSettings, plan_sequence
from smart_caption_ros.sources.acvr import AcvrSequences
from tests.simulation.household.convex_renderer import render_instances
from training.data.coco import read_captions

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
