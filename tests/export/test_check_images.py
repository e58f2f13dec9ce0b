"""The photographs that an export is checked on."""

import cv2
import pytest

from export.bundle import ExportError
from export.source import CheckImages
from tests.frames import blobs

DATA = {"max_words": 12}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "photographs" / "kitchen").mkdir(parents=True)
    for number, size in enumerate([(40, 60), (90, 30)]):
        cv2.imwrite(str(tmp_path / "photographs" / "kitchen" / f"{number}.png"), blobs(number, *size))
    return tmp_path / "photographs"


def test_the_photographs_of_a_folder_are_read_at_any_size(folder):
    (folder / "kitchen" / "._0.png").write_bytes(b"a file manager's")
    photographs = CheckImages.find(folder, DATA)
    assert [image.shape for image in photographs.read(5)] == [(40, 60, 3), (90, 30, 3)]


@pytest.mark.parametrize("data", [DATA, {"dataset": "gone"}, {"options": {"gone": 1}}])
def test_without_the_runs_data_the_frames_that_ship_are_taken(tmp_path, monkeypatch, data):
    monkeypatch.setenv("SMART_CAPTION_DATA", str(tmp_path))
    photographs = CheckImages.find(None, data)
    assert photographs.description == "frames that ship"
    assert len(photographs.read(3)) == 3


def test_a_folder_without_photographs_and_a_broken_one_are_refused(folder, tmp_path):
    with pytest.raises(ExportError, match="has no photographs"):
        CheckImages.find(tmp_path / "nothing", DATA)
    (folder / "broken.jpg").write_bytes(b"no image")
    with pytest.raises(ExportError, match=r"broken\.jpg"):
        CheckImages.find(folder, DATA).read(5)
