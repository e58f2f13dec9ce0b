"""No output replaces an input, a folder or a device: status 2, one sentence, nothing touched."""

from pathlib import Path

import cv2
import numpy as np
import pytest

PICTURE = cv2.imencode(".png", np.full((8, 8, 3), 90, np.uint8))[1].tobytes()
CASES = {
    "overlay": "describe a.png -o .",
    "overlay by a link": "describe a.png -o linked",
    "overlays of a folder": "describe photos -o photos",
    "sheet": "describe a.png --sheet a.png",
    "sheet by a hard link": "describe a.png --sheet b.png",
    "sheet in the folder": "describe photos --sheet photos/c.png",
    "bag": "describe r.mcap -o r.mcap",
    "captions": "coverage folder photos --detector d.onnx --captions c.json --json c.json",
    "page": "coverage coco i.json --images photos --html i.json",
    "photograph": "coverage coco i.json --images photos --html photos/c.png",
    "kept": "coverage folder photos --detector d.onnx --keep d.onnx",
    "labels": "coverage acvr home --html home/one/labels.json",
    "detections": "coverage acvr home --detections home --json home/one.json",
    "frames": "benchmark --source a.png --json a.png",
    "bundle": "benchmark home/one --json home/one/labels.json",
    "bundle that is scored": "coverage coco i.json --images a --bundle photos --json photos/c.png",
    "labels of one sequence": "coverage acvr home/one --json home/one/labels.json",
    "overlays of sequences": "describe home -o home/one",
    "kept captions": "coverage coco i.json --images a --keep c.json --html c.json",
    "demo": "demo --source a/overlays --output a",
    "log": "log export r.db --log r.db",
    "log in the home folder": "log export r.db --log ~/r.db",
    "write-ahead log": "log export r.db-wal --log r.db",
    "folder": "describe a.png --sheet folder.png",
    "full": "benchmark --json /dev/full",
}


@pytest.mark.parametrize("command", CASES.values(), ids=CASES)
def test_an_output_that_must_not_be_written_is_refused(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    files = ["a.png", "photos/c.png", "a/overlays/d.png", "r.mcap", "r.db", "r.db-wal", "c.json", "i.json", "d.onnx"]
    files += ["home/one/labels.json", "home/one.json", "home/one/one_0.png"]
    for name in files:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(PICTURE)
    Path("b.png").hardlink_to("a.png")
    Path("linked").symlink_to(".")
    Path("folder.png").mkdir()
    before = sorted(tmp_path.rglob("*"))

    done = run(*command.split())

    assert done.exit_code == 2, done.stderr
    assert done.stderr.startswith("smart-caption: ")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(": name another output\n")
    assert {Path(name).read_bytes() for name in files} == {PICTURE}
    assert sorted(tmp_path.rglob("*")) == before
