"""`smart-caption coverage acvr`, `coco` and `folder`: figures by hand, broken roots, and what is kept."""

import json
import os
import shutil
import sqlite3
from pathlib import Path

import cv2
import numpy as np
import pytest

from smart_caption_ros.caption_log import CaptionLog
from smart_caption_ros.cli.app import app
from smart_caption_ros.sources.acvr import AcvrSequences
from smart_caption_ros.sources.sequences import sample_sequences_path
from tests.cli_runner import cli_runner
from tests.detection.tiny_detectors import BLUE, GREEN, squares, write_yolox
from tests.engines.small_graphs import changed_manifest
from tests.grounding.conftest import EXAMPLE_VECTORS
from tests.sources.acvr_sequence import Drawn, write_rooms, write_sequence

COUCH = Drawn("sofa", 1, 1, (0, 0, 49, 39))  # 20 % of the image
CUP = Drawn("cup", 2, 2, (60, 60, 69, 79))  # 2 %
LAPTOP = Drawn("laptop", 3, 3, (10, 10, 39, 29))  # 6 %
TABLE = Drawn("diningtable", 4, 4, (20, 20, 69, 69))  # 25 %
SMALL_CUP = Drawn("cup", 5, 5, (80, 80, 89, 89))  # 1 %, and so not above 1 %
CAPTIONS = {
    "000000/000000": "a cup on a table near a sofa",
    "000000/000001": "a table",
    "000001/000000": "a table",
    "000001/000001": "",
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "smart_caption_ros"


def write_root(root, **options):
    """Two sequences of two frames; the last has no objects."""
    write_sequence(root / "000000", {0: [COUCH, CUP], 1: [LAPTOP]}, **options)
    write_sequence(root / "000001", {0: [TABLE, SMALL_CUP], 1: []}, **options)
    return root


@pytest.fixture
def root(tmp_path):
    return write_root(tmp_path / "root")


@pytest.fixture
def captions(tmp_path):
    (tmp_path / "captions.json").write_text(json.dumps(CAPTIONS))
    return tmp_path / "captions.json"


@pytest.fixture(scope="session")
def vectors(tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    path.write_text(EXAMPLE_VECTORS)
    return path


def run(*arguments):
    return cli_runner().invoke(app, ["coverage", *(str(argument) for argument in arguments)])


def figures(*arguments):
    output = Path(os.environ["XDG_CACHE_HOME"]).parent / "out.json"
    result = run(*arguments, "--json", output)
    assert result.exit_code == 0, result.output
    return json.loads(output.read_text())


@pytest.mark.parametrize("options", [{}, {"with_boxes": False, "mask_bits": 16}], ids=["boxes", "masks"])
def test_the_figures_of_a_small_root_worked_out_by_hand(tmp_path, captions, vectors, options):
    content = figures(
        "acvr", write_root(tmp_path / "root", **options), "--captions", captions, "--word-vectors", vectors
    )
    # cup and couch: (1 + 0.96) / 2; couch alone: 0.96; laptop and table: 0.28; dining table and table: 0.96.
    assert content["coverage"] == {
        "0.01": pytest.approx((0.98 + 0.28 + 0.96) / 3, abs=1e-6),
        "0.03": pytest.approx((0.96 + 0.28 + 0.96) / 3, abs=1e-6),
        "0.05": pytest.approx((0.96 + 0.28 + 0.96) / 3, abs=1e-6),
        "0.1": pytest.approx(0.96, abs=1e-6),
    }
    assert content["frames"] == {"0.01": 3, "0.03": 3, "0.05": 3, "0.1": 2}
    # Two of three nouns of the first caption, none of the second, the only one of the third; the fourth has none.
    assert content["noun_support"] == pytest.approx((2 / 3 + 0 + 1) / 3, abs=1e-6)
    assert (content["noun_support_frames"], content["scored_frames"]) == (3, 4)
    first, second = content["sequences"].values()
    assert first["coverage"]["0.01"] == pytest.approx((0.98 + 0.28) / 2, abs=1e-6)
    assert first["frames"] == {"0.01": 2, "0.03": 2, "0.05": 2, "0.1": 1}
    assert second["coverage"]["0.1"] == pytest.approx(0.96, abs=1e-6)
    assert second["noun_support"] == 1
    assert list(content["classes"]) == ["laptop", "couch", "cup", "dining table"]
    assert content["classes"]["laptop"] == {"frames": 1, "named": 0, "missed": 1, "similarity": 0.28}
    assert content["near_misses"] == [{"class": "laptop", "noun": "table", "frames": 1, "similarity": 0.28}]
    assert content["skipped"] == {}


def test_the_table_shows_sequences_all_and_what_was_missed(root, captions, vectors):
    result = run("acvr", root, "--captions", captions, "--word-vectors", vectors)
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "000000 captions.json 0.630 (2) 0.620 (2) 0.620 (2) 0.960 (1) 0.333 (2)" in rows
    assert "all captions.json 0.740 (3) 0.733 (3) 0.733 (3) 0.960 (2) 0.556 (3)" in rows
    assert "laptop 1 1" in rows
    assert "laptop table 1 0.280" in rows
    assert result.stderr == ""


def test_several_files_of_captions_are_set_side_by_side(root, captions, tmp_path):
    (tmp_path / "more").mkdir()
    other = tmp_path / "more" / "captions.json"
    other.write_text(json.dumps(dict.fromkeys(CAPTIONS, "a sofa")))
    page = tmp_path / "report.html"
    content = figures("acvr", root, "--captions", captions, "--captions", other, "--html", page)
    labels = [f"captions.json ({path})" for path in (captions, other)]
    assert [result["label"] for result in content["results"]] == labels
    alone = figures("acvr", root, "--captions", other)
    assert content["results"][1]["coverage"] == alone["coverage"]
    assert all(label in page.read_text() for label in labels)


def test_captions_that_do_not_fit_the_frames_are_counted(root, tmp_path):
    # Padding does not matter; one frame has no caption, and one caption no frame.
    given = {"0/0": "a cup", "000000/1": "a laptop", "1/000001": "a wall", "7/" + "3" * 5000: "a dog"}
    (tmp_path / "given.json").write_text(json.dumps(given))
    result = run("acvr", root, "--captions", tmp_path / "given.json", "--json", tmp_path / "out.json")
    assert "frames without a given caption: 1 (the first: 000001/000000)" in result.stderr
    assert "given captions of frames that are not there: 1 (the first: 7/333" in result.stderr
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["scored_frames"] == 3
    assert content["skipped"]["frames without a given caption"] == {"count": 1, "first": "000001/000000"}


def test_detections_take_the_place_of_the_labels(root, captions, vectors, tmp_path):
    chair = {"bbox": [0, 0, 49, 39], "label_probs": [0.1, 0.9]}
    lists = {"000000": [[chair], []], "000001": [[], [chair]]}
    (tmp_path / "found").mkdir()
    for sequence, detections in lists.items():
        content = {"classes": ["none", "cup"], "detections": detections}
        (tmp_path / "found" / f"{sequence}.json").write_text(json.dumps(content))
    common = ("acvr", root, "--captions", captions, "--word-vectors", vectors)
    content = figures(*common, "--detections", tmp_path / "found")
    assert content["coverage"]["0.1"] == 0.5  # named in the first frame, and not in the last
    assert content["frames"]["0.1"] == 2
    assert content["objects"].startswith("detections in")
    strict = figures(*common, "--detections", tmp_path / "found", "--detection-score", "0.95")
    assert strict["frames"]["0.01"] == 0
    assert strict["coverage"]["0.01"] is None
    one = figures(*common, "--detections", tmp_path / "found" / "000001.json")
    assert list(one["sequences"]) == ["000001"]
    assert one["skipped"] == {
        "sequences without detections": {"count": 1, "first": "000000"},
        "given captions of frames that are not there": {"count": 2, "first": "000000/000000"},
    }


def test_coco_files_are_scored_with_the_captions_of_cocos_results(tmp_path, vectors):
    cv2.imwrite(str(tmp_path / "000007.png"), np.full((100, 100, 3), 90, np.uint8))
    instances = {
        "images": [{"id": 7, "file_name": "000007.png", "width": 100, "height": 100}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "bbox": [0, 0, 50, 40]}],
        "categories": [{"id": 3, "name": "couch"}],
    }
    (tmp_path / "instances.json").write_text(json.dumps(instances))
    (tmp_path / "results.json").write_text(json.dumps([{"image_id": 7.0, "caption": "a sofa"}]))
    content = figures(
        "coco", tmp_path / "instances.json", "--images", tmp_path, "--captions", tmp_path / "results.json",
        "--word-vectors", vectors,
    )  # fmt: skip
    assert content["coverage"] == dict.fromkeys(("0.01", "0.03", "0.05", "0.1"), 0.96)
    assert list(content["sequences"]) == ["instances"]


def test_without_a_root_the_sequences_in_the_package_are_scored(tmp_path, vectors):
    data = AcvrSequences(sample_sequences_path())
    (tmp_path / "captions.json").write_text(json.dumps({frame.name: "a room" for frame in data.frames()}))
    options = ("--captions", tmp_path / "captions.json", "--html", tmp_path / "report.html")
    result = run("acvr", *options, "--json", tmp_path / "out.json")
    assert result.exit_code == 0
    assert f"no ROOT was given: taking the household sequences in the package, {data.spec}" in result.stderr
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["data"] == data.spec
    assert content["scored_frames"] == data.count()
    assert "data:image/jpeg;base64," in (tmp_path / "report.html").read_text()


def test_photographs_without_ground_truth_are_scored_against_a_detector(tmp_path):
    photographs = tmp_path / "photographs"
    photographs.mkdir()
    for name, colour in (("a.png", GREEN), ("b.jpg", BLUE)):
        cv2.imwrite(str(photographs / name), squares(64, 64, (colour, (16, 16, 48, 48))))
    (photographs / "c.png").write_bytes(b"no picture")
    (tmp_path / "given.json").write_text(json.dumps({"photographs/a.png": "a dog", "b.jpg": "a dog"}))
    options = ("--detector", write_yolox(tmp_path / "d.onnx"), "--captions", tmp_path / "given.json")
    page = tmp_path / "report.html"
    result = run("folder", photographs, *options, "--json", tmp_path / "out.json", "--html", page)
    assert result.exit_code == 0, result.output
    reference = "detections by d.onnx, score 0.35 or more: a reference, not ground truth"
    assert f"objects: {reference}" in result.stdout
    assert reference in page.read_text()
    assert "frames whose image cannot be read: 1 (the first: photographs/c.png)" in result.stderr
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["objects"] == reference
    assert content["scored_frames"] == 2
    assert content["classes"]["dog"]["named"] == 1
    assert content["classes"]["person"]["named"] == 0
    assert content["noun_support"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["acvr", "nowhere"], 1, "nowhere: no such folder"),
        (["acvr", "ROOT", "--captions", "CAPTIONS", "--bundle", "b"], 2, "Give bundles or captions, not both"),
        (["acvr", "ROOT", "--engine", "steam"], 2, "'steam' is not one of"),
        (["acvr", "ROOT", "--json", "nowhere/out.json"], 2, "There is no folder nowhere"),
        (["acvr", "ROOT", "--bundle", "nowhere"], 1, "nowhere: no such bundle"),
        (["acvr", "ROOT", "--captions", "nowhere"], 1, "nowhere cannot be read: No such file"),
        (["acvr", "ROOT", "--captions", "ROOT/000000/labels.json"], 1, "holds no captions: expected"),
        (["acvr", "ROOT", "--captions", "ROOT/000000/0.png"], 1, "0.png is not JSON"),
        (["acvr", "ROOT", "--captions", "CAPTIONS", "--detections", "nowhere"], 1, "no such file or folder"),
        (["acvr", "ROOT", "--keep", "ROOT/000000/0.png"], 2, "0.png is also an input"),
        (["coco", "nowhere.json", "--images", "ROOT"], 1, "nowhere.json cannot be read"),
        (["folder", "ROOT/000000"], 2, "Missing option '--detector'"),
        (["folder", "ROOT/000000", "--detector", "nowhere.onnx"], 1, "nowhere.onnx: there is no such detector"),
        (["folder", "nowhere", "--detector", "DETECTOR"], 1, "nowhere: no such folder"),
        (["folder", "ROOT", "--detector", "DETECTOR"], 1, "no images in the folder"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_sentence(root, captions, arguments, status, sentence, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    places = {"ROOT": root, "CAPTIONS": captions, "DETECTOR": write_yolox(root.parent / "d.onnx")}
    for name, place in places.items():
        arguments = [argument.replace(name, str(place)) for argument in arguments]
    result = run(*arguments)
    assert result.exit_code == status
    assert sentence in result.stderr
    assert "Traceback" not in result.output


def test_what_is_left_out_is_told_and_the_rest_is_scored(root, captions, tmp_path):
    (root / "000002").mkdir()
    cv2.imwrite(str(root / "000000" / "1.png"), np.zeros((50, 50), np.uint8))
    (root / "000001" / "rgb_000000.png").unlink()
    result = run("acvr", root, "--captions", captions, "--json", tmp_path / "out.json")
    assert result.exit_code == 0
    for sentence in (
        "folders without labels.json: 1 (the first: 000002)",
        "frames without an image: 1 (the first: 000001/000000)",
        "frames whose mask has another size than the image: 1 (the first: 000000/000001)",
    ):
        assert sentence in result.stderr
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["frames"]["0.01"] == 1
    assert sum(issue["count"] for issue in content["skipped"].values()) == 5  # with the two captions that had no frame


def kept_texts(path):
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            return [text for (text,) in database.execute("SELECT text FROM captions")]
    except sqlite3.OperationalError:  # not made yet
        return []


def test_bundles_side_by_side_caption_each_frame_once(tiny_bundle, tmp_path, cache):
    write_rooms(tmp_path / "root")
    other = Path(shutil.copytree(tiny_bundle, tmp_path / "other"))
    with changed_manifest(other) as manifest:
        manifest["name"] = "renamed"
    command = ("acvr", tmp_path / "root", "--every", "4", "--bundle", tiny_bundle, "--bundle", other)
    content = figures(*command)
    first, second = content["results"]
    assert (first["label"], second["label"]) == ("tiny", "renamed")
    assert first["coverage"] == second["coverage"]
    assert first["scored_frames"] == 4
    assert len(kept_texts(cache / "captions.sqlite")) == 8
    again = run(*command)
    assert "tiny: 4 captions were kept from an earlier run" in again.stderr
    anew = run(*command, "--fresh")
    assert "were kept" not in anew.stderr


def test_a_bad_bundle_is_refused_before_the_good_one_has_captioned(tiny_bundle, tmp_path, cache):
    write_rooms(tmp_path / "root")
    result = run("acvr", tmp_path / "root", "--bundle", tiny_bundle, "--bundle", tmp_path / "nowhere")
    assert result.exit_code == 1
    assert "nowhere: no such bundle" in result.stderr
    assert kept_texts(cache / "captions.sqlite") == []


def test_a_cache_that_cannot_be_written_costs_the_cache_and_not_the_run(tmp_path, tiny_bundle, monkeypatch):
    (tmp_path / "file").write_text("")
    cache = tmp_path / "file" / "captions.sqlite"
    monkeypatch.setattr("smart_caption_ros.evaluation.caption_cache.default_caption_cache_path", lambda: cache)
    write_rooms(tmp_path)
    done = run("acvr", tmp_path, "--bundle", tiny_bundle, "--json", tmp_path / "out.json")
    assert done.exit_code == 0, done.output
    assert "captions cannot be kept there" in done.stderr
    assert "this run keeps none" in done.stderr
    assert (tmp_path / "out.json").is_file()
    CaptionLog(tmp_path / "log.db").close()
    before = (tmp_path / "log.db").read_bytes()
    for named, reason in ((cache, ""), (tmp_path / "log.db", " (it is a database of another program)")):
        refused = run("acvr", tmp_path, "--bundle", tiny_bundle, "--keep", named)
        assert (refused.exit_code, f"captions cannot be kept there{reason}" in refused.stderr) == (1, True)
    assert (tmp_path / "log.db").read_bytes() == before
