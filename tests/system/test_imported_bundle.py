"""An imported captioner in the node and the programs around it, as processes."""

import json
import math
import re
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
from sensor_msgs.msg import Image
from smart_caption_ros.msg import BoundingBox, Caption, DetectedObject, DetectedObjectArray
from smart_caption_ros.srv import DescribeImage
from std_msgs.msg import Header

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.imaging.image_messages import encode_image
from tests.frames import blobs
from tests.live.terminal_process import CLI, TerminalProcess

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("transformers") is None, reason="needs the extra metrics"),
]
CAMERAS = ("front", "rear")
TOKEN = "a-token-of-this-test-alone"


def tiles(seed):
    """An image with detail, (48, 64, 3): captions of one without are refused."""
    return np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8).repeat(8, axis=0).repeat(8, axis=1)


WRITE_AND_IMPORT = """
import pathlib, sys
from export.import_checkpoint.__main__ import main
from training.vision.torchvision_operators import declare_torchvision_operators
declare_torchvision_operators()
from tests.published_folders import write_published
write_published(pathlib.Path(sys.argv[2]), "florence2")
sys.exit(main())
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A tiny published captioner with random weights, imported by a process of a workstation."""
    folder = tmp_path_factory.mktemp("published")
    options = ["--check-images", "2", "--max-words", "16", "--no-static"]
    arguments = ["florence2", folder / "model", "-o", folder / "bundle", *options]
    command = [sys.executable, "-c", WRITE_AND_IMPORT, *map(str, arguments)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
    return folder / "bundle"


def test_the_node_runs_an_imported_bundle_with_two_cameras(robot, bundle):
    """The steps:

    1. Captions of both cameras are those of the bundle alone, with whole words and boxes.
    2. Detections give the captions coverage.
    3. ~/describe_image answers; after deactivate and activate captions go on.
    """
    robot.start(
        "smart_caption_ros.nodes.caption_command", "-p", f"bundle:={bundle}", "-p", "cameras:=[front, rear]",
        "-p", "max_age_s:=0.0", "-p", "detection_wait_s:=5.0", "-p", "engine:=onnxruntime-cpu",
    )  # fmt: skip
    alone = Captioner.from_bundle(bundle, engine="onnxruntime-cpu")
    captions = {camera: robot.listen(Caption, f"/{camera}/caption") for camera in CAMERAS}
    images = {camera: robot.publisher(Image, f"/{camera}/image") for camera in CAMERAS}
    detections = {camera: robot.publisher(DetectedObjectArray, f"/{camera}/detections") for camera in CAMERAS}

    def ask(camera, number, image_bgr):
        header = Header(frame_id="eye")
        header.stamp.sec = number
        found = DetectedObject(class_name="dog", score=0.9, box=BoundingBox(x2=9.0, y2=9.0))
        detections[camera].publish(DetectedObjectArray(header=header, objects=[found]))
        images[camera].publish(Image(header=header, **encode_image(image_bgr)))
        return robot.wait_for(
            lambda: next((c for c in captions[camera] if c.header == header), None), f"caption of {camera}"
        )

    for number, camera in enumerate([*CAMERAS, *CAMERAS], 1):
        image_bgr = tiles(number)
        caption, expected = ask(camera, number, image_bgr), alone.caption(image_bgr)
        assert (caption.text, caption.camera) == (expected.text, camera)
        assert [word.text for word in caption.words] == [word.text for word in expected.words]
        assert caption.score == pytest.approx(expected.score, abs=1e-3)
        # A word that attended to the class token most has no box.
        boxes = [word.box for word in caption.words if not math.isnan(word.box.x1)]
        assert all(0 <= box.x1 < box.x2 <= 64 for box in boxes)
        assert caption.coverage.valid
    answer = robot.call(DescribeImage, "/caption_node/describe_image", image=Image(**encode_image(tiles(9))))
    assert answer.caption.text == alone.caption(tiles(9)).text
    assert robot.change_state("deactivate")
    assert robot.change_state("activate")
    assert ask("front", 20, blobs(20, 48, 64)).status == Caption.STATUS_LOW_CONFIDENCE, "blobs show little detail"
    assert ask("front", 21, tiles(0)).status == Caption.STATUS_OK


def test_watch_and_serve_show_the_captions_of_an_imported_bundle(bundle, tmp_path):
    (tmp_path / "pictures").mkdir()
    cv2.imwrite(str(tmp_path / "pictures" / "a.png"), tiles(1))
    text = Captioner.from_bundle(bundle, engine="onnxruntime-cpu").caption(tiles(1)).text
    source = ("--source", str(tmp_path / "pictures"), "--bundle", str(bundle), "--interval", "0.2", "--loop")
    with TerminalProcess(CLI, "watch", *source) as terminal:
        terminal.wait_for(lambda: text[:20] in terminal.screen)
        terminal.type(b"\x03")
        assert terminal.wait() == 130
    command_line = [sys.executable, "-c", CLI, "serve", "--port", "0", "--token", TOKEN, *source]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert address
            shown = {}
            end_s = time.monotonic() + 60
            while not shown and time.monotonic() < end_s:
                headers = {"Authorization": f"Bearer {TOKEN}"}
                request = urllib.request.Request(f"{address[0]}/captions.json", headers=headers)
                with urllib.request.urlopen(request, timeout=60) as answer:
                    shown = json.load(answer)["captions"]
            assert next(iter(shown.values()))["text"] == text
        finally:
            process.terminate()
