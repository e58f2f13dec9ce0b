"""The command `demo` with the default bundle."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import pytest

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.cli.app import app
from smart_caption_ros.sources import open_source
from tests.cli_runner import cli_runner
from tests.nodes.fake_captioner import painted

pytestmark = pytest.mark.usefixtures("ros_environment")

COMMAND = [sys.executable, "-c", "from smart_caption_ros.cli import main; main()", "demo"]
TIMEOUT_S = "240"


def run(*arguments):
    return subprocess.run(
        [*COMMAND, "--timeout", TIMEOUT_S, *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def test_the_demo_drives_through_the_household_sequences_with_their_objects(tmp_path):
    output = tmp_path / "demo_output"
    done = run("--output", str(output), "--rate", "2", "--every", "32", "--max-frames", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the demo takes the first 3 of 5" in done.stdout
    assert "objects: the sequences' ground truth, published on /detections" in done.stdout

    source = open_source("sample:household")
    frames = list(source.every(32))[:3]
    captioner = Captioner.from_bundle()
    expected = [captioner.caption(frame.image_bgr) for frame in frames]
    records = [json.loads(line) for line in (output / "captions.jsonl").read_text().splitlines()]
    assert [record["text"] for record in records] == [caption.text for caption in expected]
    assert [record["image"] for record in records] == [source.address_of(frame) for frame in frames]
    for record, caption, frame in zip(records, expected, frames, strict=True):
        assert record["status"] == "ok"
        assert record["score"] == pytest.approx(caption.score, abs=1e-2)
        assert [word["text"] for word in record["words"]] == [word.text for word in caption.words]
        assert record["latency_ms"] >= record["timing_ms"]["total"] > 0
        assert float(record["stamp"]) == pytest.approx(time.time(), abs=3600)
        assert record["objects_from"] == "ground truth"
        assert sorted((detected["class_name"], detected["box_xyxy"]) for detected in record["objects"]) == sorted(
            (known.class_name, list(known.box_xyxy)) for known in frame.objects or ()
        )
        assert (record["coverage"] is not None) == bool(frame.objects)
        assert {"nouns", "model", "engine"} <= record.keys()
        printed = next(line for line in done.stdout.splitlines() if line.startswith(frame.name))
        assert caption.text in printed
        assert re.search(r"score -?\d+\.\d\d .*latency \d+ ms", printed)
        assert ("coverage" in printed) == bool(frame.objects)
    assert any(record["coverage"] for record in records)
    assert len({record["stamp"] for record in records}) == len(frames)

    overlays = sorted((output / "overlays").iterdir())
    assert [path.name for path in overlays] == [
        f"{index:04d}_{frame.name.replace('/', '_')}.png" for index, frame in enumerate(frames)
    ]
    for path, frame in zip(overlays, frames, strict=True):
        overlay = cv2.imread(str(path))
        assert overlay.shape[0] > frame.image_bgr.shape[0], "a strip with the caption"
        assert overlay.shape[1] == frame.image_bgr.shape[1]
    assert cv2.imread(str(output / "contact_sheet.png")) is not None
    assert sorted(path.name for path in output.iterdir()) == ["captions.jsonl", "contact_sheet.png", "overlays"]


@pytest.mark.long
def test_a_frame_without_an_answer_fails_the_demo_and_is_named(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for index in range(30):  # far more a second than any processor captions: the newest wins, the others are dropped
        cv2.imwrite(str(folder / f"{index:02d}.png"), painted(100 + index, 32, 32))
    code = (
        "import sys; from pathlib import Path; from smart_caption_ros.nodes.demo.demo import run_demo; "
        "from smart_caption_ros.nodes.demo.plan import DemoOptions; "
        f"options = DemoOptions({str(folder)!r}, Path({str(tmp_path / 'out')!r}), rate_hz=240.0, timeout_s=20.0); "
        "sys.exit(run_demo(options))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done.stdout
    unanswered = re.findall(r"(\d\d)\.png was not answered", done.stderr)
    assert unanswered
    answered = [Path(path.name).stem[-2:] for path in (tmp_path / "out" / "overlays").iterdir()]
    assert sorted(unanswered + answered) == [f"{index:02d}" for index in range(30)]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--source", "/no/such/place"], "there is no file or folder /no/such/place"),
        (["--output", "/proc/demo_output"], "demo_output"),
        (["--timeout", "1", "--rate", "0.1"], "allow more time, or fewer frames"),
    ],
)
def test_what_cannot_work_is_said_at_once(arguments, sentence, tmp_path):
    done = cli_runner().invoke(app, ["demo", "--timeout", TIMEOUT_S, "--output", str(tmp_path / "out"), *arguments])
    assert done.exit_code == 1
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.output


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_an_interrupted_demo_ends_its_nodes(tmp_path):
    arguments = ["--output", str(tmp_path / "out"), "--rate", "0.1", "--timeout", TIMEOUT_S]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True, start_new_session=True) as demo:
        deadline_s = time.monotonic() + 120
        while len(children := children_of(demo.pid)) < 2:
            assert time.monotonic() < deadline_s, "the demo has no children"
            assert demo.poll() is None
            time.sleep(0.05)
        os.kill(demo.pid, signal.SIGINT)
        assert demo.wait(120) == 130
    for child in children:
        assert not Path(f"/proc/{child}").exists()
