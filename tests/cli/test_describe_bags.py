"""`smart-caption describe` into bags of captions: one, many, and on a cluster."""

import json
import shutil
import sys
from importlib.util import find_spec

import cv2
import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (extra [bags])")

from tests.bags.bag_files import compressed, image, storage_file, write_bag
from tests.frames import blobs

CAMERAS = {"/front/image_raw": image, "/rear/image/compressed": compressed}


def test_a_bag_becomes_a_bag_of_captions_and_says_how_fast(tmp_path, detecting_bundle, run):
    bag, output = write_bag(tmp_path / "run", CAMERAS), tmp_path / "out.mcap"
    arguments = ("describe", bag, "-o", output, "--bundle", detecting_bundle)
    result = run(*arguments, "--topic", "/front/image_raw", "--topic", "/rear/image/compressed")
    assert result.exit_code == 0, result.output
    assert f"{output}: captioned 8 images of 2 cameras (/front/caption, /rear/caption); 0.3 s of" in result.stdout
    assert "times real time" in result.stdout
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{output} exists" in result.stderr
    report = json.loads(run(*arguments, "--every", 2, "--force", "--json").stdout)
    assert (report["images"], report["failed"], report["damage"]) == (4, 0, "")


def test_a_bag_that_was_cut_off_has_an_exit_status_of_its_own(tmp_path, detecting_bundle, run):
    bag = write_bag(tmp_path / "run", {"/front/image_raw": image}, count=300)
    file = storage_file(bag)
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size * 9 // 10)
    arguments = ("--bundle", detecting_bundle, "--every", 200)
    result = run("describe", file, "-o", tmp_path / "out.mcap", *arguments)
    assert result.exit_code == 3, result.output
    assert "of its messages can be read" in result.stdout


@pytest.fixture
def runs(tmp_path):
    """Two bags of one name, one that is damaged, and a folder of photographs."""
    root = tmp_path / "runs"
    for number, day in enumerate(("day_1", "day_2", "day_3")):
        topics = {f"/front_{number}/image_raw": image, f"/front_{number}/image_raw/compressed": compressed}
        storage = storage_file(write_bag(root / day / "run", topics, count=2))
        if day == "day_3":
            storage.write_bytes(b"nothing")
    (root / "photos").mkdir()
    cv2.imwrite(str(root / "photos" / "1.png"), blobs(1, 32, 48))
    return root


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.long
def test_many_inputs_become_a_folder_of_files_and_finished_ones_are_skipped(tmp_path, runs, detecting_bundle, run):
    arguments = ("describe", runs, "--bundle", detecting_bundle, "--retries", 1)
    result = run(*arguments, "--shards", tmp_path / "two", "--jobs", 2)
    assert result.exit_code == 1
    assert "3 files with the captions of 5 images" in result.stdout
    assert "day_3/run failed: cannot read the bag" in result.stderr
    assert "1 of 4 failed" in result.stderr
    assert "smart-caption: day_1/run: /front_0/image_raw/compressed " in result.stderr, "what was left out"
    two = contents(tmp_path / "two")
    assert list(two) == ["day_1/run.mcap", "day_2/run.mcap", "photos.jsonl"]
    assert json.loads(two["photos.jsonl"].splitlines()[0])["text"]

    shutil.rmtree(runs / "day_3")
    (tmp_path / "two" / "photos.jsonl").unlink()
    again = run(*arguments, "--shards", tmp_path / "two", "--jobs", 1)
    assert again.exit_code == 0, again.output
    assert "1 file with the captions of 1 image" in again.stdout
    assert "2 inputs skipped, whose files exist" in again.stdout
    assert contents(tmp_path / "two") == two

    if find_spec("ray") is None:
        pytest.skip("the cluster is left out: ray is not installed (extra [fleet])")
    result = run(*arguments, "--shards", tmp_path / "cluster", "--ray", "local", "--jobs", 2)
    assert result.exit_code == 0, result.output
    assert contents(tmp_path / "cluster") == two


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path, runs, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    result = run("describe", runs, "--shards", tmp_path / "out", "--ray", "auto")
    assert result.exit_code == 1
    assert "work on a cluster needs the package ray: pip install 'smart_caption_ros[fleet]'" in result.stderr


def figures(path):
    return json.loads(path.read_text())


@pytest.mark.long
def test_coverage_has_the_same_figures_with_any_number_of_workers(tmp_path, detecting_bundle, run):
    arguments = ("coverage", "acvr", "--every", 20, "--bundle", detecting_bundle)
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    assert run(*arguments, "--keep", tmp_path / "a.sqlite", "--json", one).exit_code == 0
    result = run(*arguments, "--keep", tmp_path / "b.sqlite", "--json", two, "--jobs", 2)
    assert result.exit_code == 0, result.output
    assert "were kept from an earlier run" not in result.stderr
    assert figures(one) == figures(two)
