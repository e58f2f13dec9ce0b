"""The command line: in this process with a captioner that needs no model, and as a process where that matters."""

import json
import signal
import subprocess
import sys
from dataclasses import replace

import cv2
import numpy as np
import pytest

from smart_caption_ros.captioning import (
    Alternative,
    Caption,
    Captioner,
    DetectedObject,
    EngineError,
    Timing,
    Word,
    default_bundle_path,
)
from smart_caption_ros.cli.app import app
from smart_caption_ros.record import CaptionRecord
from tests.cli_runner import cli_runner
from tests.detection.tiny_detectors import GREEN, squares, write_yolox


class FakeCaptioner:
    """Says how large the frame is; fails on frames that are all white."""

    model = "fake-model"
    engine = "fake engine"
    detector = None

    def caption(self, image_bgr):
        if image_bgr.min() == 255:
            raise EngineError("the engine failed")
        height, width = image_bgr.shape[:2]
        return Caption(
            text=f"{width} by {height}",
            words=(Word(str(width), -0.25, (0.0, 0.0, width / 7, height / 7)),),
            score=-0.5,
            confidence=0.75,
            calibrated_confidence=0.625,
            alternatives=(Alternative("something else", -2.0),),
            objects=(DetectedObject("dog", 16, 0.875, (1.0, 2.0, 3.0, 4.0)),),
            timing=Timing(0.001, 0.002, 0.004, 0.0075, 3),
            image_size=(width, height),
            model=self.model,
            engine=self.engine,
        )


@pytest.fixture
def captioner(monkeypatch):
    fake = FakeCaptioner()

    def from_bundle(path=None, engine="auto", detector=None, **_):
        fake.arguments = (path, engine, detector)
        return fake

    monkeypatch.setattr(Captioner, "from_bundle", from_bundle)
    return fake


@pytest.fixture
def photos(tmp_path):
    """Three pictures of 64x48; the file between the first two is broken."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, name in enumerate(["a.png", "c.jpg", "d.png"]):
        cv2.imwrite(str(folder / name), np.full((48, 64, 3), 50 * number, np.uint8))
    (folder / "b.jpg").write_bytes(b"not an image")
    return folder


def run(*arguments):
    return cli_runner().invoke(app, [str(argument) for argument in arguments])


def lines(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_picture_gives_one_json_object_with_every_field(captioner, photos):
    result = run("describe", photos / "a.png", "--json")
    assert result.exit_code == 0
    (record,) = lines(result)
    assert (record["source"], record["image"]) == (str(photos / "a.png"), str(photos / "a.png"))
    assert (record["text"], record["status"]) == ("64 by 48", "ok")
    read = CaptionRecord.from_json(record).caption
    written = captioner.caption(np.zeros((48, 64, 3), np.uint8))
    assert replace(read, words=written.words) == written
    assert captioner.arguments == (None, "auto", None)


def test_the_caption_of_a_covered_lens_is_refused(tmp_path):
    cv2.imwrite(str(tmp_path / "dark.png"), np.zeros((48, 64, 3), np.uint8))
    (record,) = lines(run("describe", tmp_path / "dark.png", "--json"))
    assert (record["shows_detail"], record["status"], record["text"]) == (False, "low confidence", "")
    assert '" is refused: the image shows next to no detail' in record["status_message"]


@pytest.mark.usefixtures("captioner")
def test_a_caption_below_the_minimum_is_refused_and_its_objects_listed_on_demand(photos):
    arguments = ("describe", photos / "a.png", "--min-calibrated-confidence", "0.7")
    refusal = "its calibrated confidence 0.625 is below min_calibrated_confidence (0.700)"
    assert f'("64 by 48" is refused: {refusal})' in run(*arguments).stdout
    (silent,) = lines(run(*arguments, "--json"))
    (listing,) = lines(run(*arguments, "--list-objects", "--json"))
    assert (silent["status"], silent["text"], listing["text"]) == ("low confidence", "", "a dog")
    assert run("describe", photos / "a.png", "--min-calibrated-confidence", "70").exit_code == 2


@pytest.mark.usefixtures("captioner")
def test_what_cannot_be_read_is_reported_in_its_place_and_the_rest_is_answered(photos):
    result = run("describe", "nowhere.jpg", photos, photos / "d.png", "--json")
    assert result.exit_code == 1
    records = lines(result)
    read = [str(photos / name) for name in ("a.png", "b.jpg", "c.jpg", "d.png", "d.png")]
    assert [record["image"] for record in records] == ["nowhere.jpg", *read]
    assert [record["status"] for record in records] == ["error", "ok", "error", "ok", "ok", "ok"]
    assert records[0]["status_message"] == "there is no file or folder nowhere.jpg"
    assert records[2]["status_message"].startswith(f"cannot read {photos / 'b.jpg'}: it is damaged")


@pytest.mark.usefixtures("captioner")
def test_a_frame_that_the_engine_fails_on_costs_that_frame_alone(photos):
    (photos / "b.jpg").unlink()
    cv2.imwrite(str(photos / "b.png"), np.full((48, 64, 3), 255, np.uint8))
    result = run("describe", photos, "--json")
    assert result.exit_code == 1
    failure = f"cannot caption {photos / 'b.png'}: the engine failed"
    assert [record["status_message"] for record in lines(result)] == ["", failure, "", ""]


@pytest.mark.usefixtures("captioner")
def test_a_person_reads_sentences_on_stdout_and_complaints_on_stderr(photos):
    result = run("describe", photos)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:3] == [
        str(photos / "a.png"),
        "  64 by 48",
        "  about 62 of 100 captions like this are true; 8 ms",
    ]
    assert "b.jpg" not in result.stdout
    assert [line for line in result.stderr.splitlines() if "b.jpg" in line] == [
        f"smart-caption: cannot read {photos / 'b.jpg'}: it is damaged or not an image in a format that OpenCV and "
        "Pillow read"
    ]


@pytest.mark.usefixtures("captioner")
def test_overlays_are_written_under_the_names_of_the_frames(photos, tmp_path, monkeypatch):
    output = tmp_path / "out" / "overlays"
    long = (photos / "d.png").rename(photos / f"d{'x' * 250}.png")
    output.mkdir(parents=True)
    result = run("describe", photos, photos / "a.png", "--output", output, "--sheet", output / "c.png")
    assert sorted(path.name for path in output.iterdir()) == ["a.png", "a_2.png", "c.png", "c_2.png", long.name]
    overlay = cv2.imread(str(output / long.name))
    assert overlay.shape[0] > 48
    assert f"4 pictures in {output}" in result.stdout
    monkeypatch.chdir(tmp_path)
    assert "4 pictures in -" in run("describe", photos, photos / "a.png", "-o", "-").stdout


@pytest.mark.usefixtures("captioner")
@pytest.mark.parametrize("name", ["sheet.jpg", "sheet.png"])
def test_one_sheet_shows_the_captioned_frames_with_their_captions(photos, tmp_path, name):
    result = run("describe", photos, "--every", "3", "--sheet", tmp_path / name)
    sheet = cv2.imread(str(tmp_path / name))
    assert sheet.shape[1] > 2 * 64, "two pictures side by side"
    assert f"2 pictures of 2 on {tmp_path / name}" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["describe"], "Name at least one"),
        (["describe", "x.jpg", "--force"], "Needs --output FILE.mcap"),
        (["describe", "x.jpg", "--sheet", "sheet.gif"], "does not end in .png, .jpg"),
        (["describe", "x.jpg", "--sheet", "nowhere/sheet.jpg"], "There is no folder"),
        (["describe", "x.jpg", "--jobs", "2"], "Needs --shards"),
        (["bundle", "verify", "--frames", "2"], "need --engines"),
        (["coverage", "acvr", "--detection-score", "0.9"], "needs --detections"),
        (["benchmark", "--threads", "1000000000"], "--threads"),
        (["log", "find", "--count", "--pictures", "x"], "not for --count"),
        (["log", "find", "--radius", "1"], "need --near"),
        (["serve", "--port", "0", "--loop"], "needs --source"),
        (["describe", "x.jpg", "-o", "out.mcap"], "x.jpg is not a ROS 2 bag"),
        (["describe", "x.jpg", "--every", "0"], "--every"),
        (["describe", "x.jpg", "--nonsense"], "No such option: --nonsense"),
        (["demo", "--rate", "0"], "--rate"),
        (["bundle", "frobnicate"], "No such command 'frobnicate'"),
    ],
)
def test_wrong_usage_is_explained_on_stderr_with_status_2(arguments, complaint):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert complaint in " ".join(result.stderr.replace("│", " ").split())


def test_a_detector_adds_objects_nouns_and_coverage(tmp_path):
    cv2.imwrite(str(tmp_path / "a.png"), squares(640, 640, (GREEN, (320, 160, 480, 320))))
    detector = write_yolox(tmp_path / "d.onnx")
    result = run("describe", tmp_path / "a.png", "--json", "--detector", detector, "--output", tmp_path / "out")
    assert result.exit_code == 0, result.output
    (record,) = lines(result)
    assert record["format"] == 3
    found = {"class_name": "dog", "class_id": 16, "score": 1.0, "box_xyxy": [320.0, 160.0, 480.0, 320.0]}
    assert found in record["objects"]
    words = [word["text"] for word in record["words"]]
    assert record["nouns"]
    for noun in record["nouns"]:
        assert list(noun) == ["noun", "lemma", "word_index", "object_index", "similarity"]
        assert words[noun["word_index"]] == noun["noun"].split()[0]
        assert (noun["object_index"] is None) == (noun["similarity"] == 0)
    assert list(record["coverage"]) == [
        "noun_coverage", "noun_support", "missed_classes", "unsupported_nouns", "out_of_vocabulary_nouns",
    ]  # fmt: skip
    assert 0 <= record["coverage"]["noun_coverage"] <= 1
    assert record["timing_ms"]["coverage"] > 0
    assert (tmp_path / "out" / "a.png").is_file()
    spoken = run("describe", tmp_path / "a.png", "--detector", detector)
    assert "dog" in spoken.output
    assert f"coverage {record['coverage']['noun_coverage']:.2f}" in spoken.output


def test_importing_the_command_line_loads_nothing_heavy():
    heavy = {"numpy", "cv2", "onnxruntime", "rclpy", "scipy", "spacy"}
    code = f"import sys, smart_caption_ros.cli; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["describe", "99"], "smart-caption: cannot open camera 99"),
        (["describe", __file__], f"smart-caption: {__file__} is not an image, a video or a ROS 2 bag"),
        (["describe", "sample:household", "--bundle", "nowhere"], "smart-caption: nowhere: no such bundle"),
        (["describe", "sample:household", "--detector", "x"], "smart-caption: x: there is no such detector"),
        (["coverage", "score", "--caption", "", "--classes", "", "--synonyms", "x"], "smart-caption: x: the list of"),
        (["bundle", "verify", "nowhere"], "smart-caption: nowhere: no such bundle"),
    ],
)
def test_a_failure_is_one_line_on_stderr_and_no_traceback(arguments, sentence):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(sentence)
    assert result.stderr.count("\n") == 1


@pytest.fixture
def many_pictures(tmp_path):
    """A folder of a thousand names of one black picture."""
    folder = tmp_path / "many"
    folder.mkdir()
    cv2.imwrite(str(folder / "0.png"), np.zeros((48, 64, 3), np.uint8))
    for number in range(1, 1000):
        (folder / f"{number}.png").hardlink_to(folder / "0.png")
    return folder


def start_describing(*arguments):
    command = [sys.executable, "-c", "from smart_caption_ros.cli import main; main()", "describe"]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        # Tests that a shell runs in the background ignore SIGINT, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def test_ctrl_c_ends_quietly_with_130(many_pictures, tiny_bundle):
    running = start_describing(many_pictures, "--bundle", tiny_bundle)
    assert running.stdout.readline().strip() == str(many_pictures / "0.png")
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=30)
    assert (running.returncode, stderr) == (130, "")
    assert len(stdout.splitlines()) < 3 * 1000


@pytest.mark.parametrize(
    ("redirection", "status", "sentence"),
    [
        (">&-", 0, ""),
        (">&- 2>&-", 0, ""),
        ("<&-", 0, ""),
        ("> /dev/full", 1, "smart-caption: the output cannot be written: No space left on device\n"),
    ],
)
def test_standard_output_that_is_closed_or_full_is_no_traceback(redirection, status, sentence):
    program = 'exec "$0" -c "from smart_caption_ros.cli import main; main()" --version'
    done = subprocess.run(["sh", "-c", f"{program} {redirection}", sys.executable], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, sentence)


def test_a_reader_that_has_had_enough_causes_no_complaint(many_pictures, tiny_bundle):
    running = start_describing("--json", many_pictures, "--bundle", tiny_bundle)
    json.loads(running.stdout.readline())
    running.stdout.close()
    assert running.stderr.read() == ""
    running.wait(timeout=60)


def test_the_default_bundle_verifies_with_an_ok_for_every_file():
    result = run("bundle", "verify")
    assert result.exit_code == 0, result.stderr
    manifest = json.loads((default_bundle_path() / "manifest.json").read_text())
    assert [line for line in result.stdout.splitlines() if line.startswith("ok")] == [
        f"ok  {name}" for name in manifest["files"]
    ]
    as_json = json.loads(run("bundle", "verify", "--json").stdout)
    assert as_json["ok"] is True
    assert as_json["files"] == list(manifest["files"])


def test_a_changed_file_of_a_bundle_is_found(bundle_copy):
    changed = bundle_copy / "vocabulary.txt"
    changed.write_bytes(changed.read_bytes()[:-2] + b"x\n")
    result, as_json = run("bundle", "verify", bundle_copy), run("bundle", "verify", bundle_copy, "--json")
    assert (result.exit_code, result.stdout, as_json.exit_code) == (1, "", 1)
    assert str(changed) in result.stderr
    assert result.stderr.count("\n") == 1
    record = json.loads(as_json.stdout)
    assert (record["ok"], str(changed) in record["error"]) == (False, True)


def test_inspect_prints_the_manifest_as_a_table_and_as_json():
    manifest = json.loads((default_bundle_path() / "manifest.json").read_text())
    assert json.loads(run("bundle", "inspect", "--json").stdout) == manifest
    table = run("bundle", "inspect").stdout
    rows = {line.split()[0]: line.split(maxsplit=1)[1].strip() for line in table.splitlines() if line[:1].strip()}
    assert rows["name"] == manifest["name"]
    assert rows["decoding.beam_size"] == str(manifest["decoding"]["beam_size"])
    assert rows["files.vision.onnx.sha256"] == manifest["files"]["vision.onnx"]["sha256"]


def test_coverage_of_a_caption_is_printed_as_a_table():
    result = run("coverage", "score", "--caption", "two dogs on a table", "--classes", "chair, dog,giraffe")
    assert result.exit_code == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["class", "noun", "similarity"]
    assert rows[1][:2] == ["chair", "table"]
    assert rows[2:4] == [["dog", "dogs", "1.000"], ["giraffe", "-", "-"]]
    assert rows[4] == ["coverage:", f"{(1 + float(rows[1][2])) / 3:.3f}"]
    assert "missed classes: chair, giraffe" in result.stdout
    assert "classes without a word vector: giraffe" in result.stdout


def test_coverage_as_json_has_every_figure():
    given = ("coverage", "score", "--caption", "a dog", "--classes", "dog,dog,cup", "--json")
    record = json.loads(run(*given).stdout)
    assert (record["noun_coverage"], record["noun_support"], record["classes"]) == (0.5, 1.0, ["dog", "cup"])
    assert record["matches"][0]["noun"]["lemma"] == "dog"
    counted = json.loads(run(*given, "--class-counts").stdout)
    assert counted["noun_coverage"] == pytest.approx(1 / 3)
