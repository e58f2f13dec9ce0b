"""The output folder of the demo is complete, of this run alone, and without temporary files."""

import json

import cv2
import pytest

from smart_caption_ros.nodes.demo.report import DemoReport
from tests.nodes.fake_captioner import painted


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_lines_overlays_and_sheet_are_written(tmp_path):
    report = DemoReport(tmp_path / "new" / "folder")
    report.add(1, "b.jpg", {"text": "zwei"}, painted(200))
    report.add(0, "dir/a.png", {"text": "eins"}, painted(100, 2000, 1000))
    assert not (report.folder / "captions.jsonl").exists(), "the lines have a temporary name until the end"
    report.close()
    assert files(report.folder) == [
        "captions.jsonl",
        "contact_sheet.png",
        "overlays/0000_dir_a.png",
        "overlays/0001_b.png",
    ]
    lines = (report.folder / "captions.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"text": "zwei"}, {"text": "eins"}], "in the order of arrival"
    overlay = cv2.imread(str(report.folder / "overlays" / "0000_dir_a.png"))
    assert overlay.shape == (1000, 2000, 3)
    sheet = cv2.imread(str(report.folder / "contact_sheet.png"))
    assert {100, 200} <= set(sheet.ravel().tolist())


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b\\c:d*?.png", "...", "", "ä" * 500, "clip.mp4#0001"])
def test_a_name_however_odd_stays_a_file_in_the_folder(tmp_path, name):
    report = DemoReport(tmp_path / "out")
    report.add(0, name, {}, painted(50))
    report.close()
    assert len(files(tmp_path / "out")) == 3
    assert len(files(tmp_path)) == 3


def test_an_earlier_run_leaves_nothing_behind_and_other_files_stay(tmp_path):
    first = DemoReport(tmp_path)
    for index in range(3):
        first.add(index, f"{index}", {}, painted(50))
    first.close()
    (tmp_path / "notes.txt").write_text("mine")
    DemoReport(tmp_path).close()
    assert files(tmp_path) == ["captions.jsonl", "notes.txt"]
    assert (tmp_path / "captions.jsonl").read_text() == ""
