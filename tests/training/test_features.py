"""``python -m training.features``: stores, refusals, and a command that is killed and resumed."""

import signal
import subprocess
import sys
import time

import cv2
import numpy as np
import pytest

from smart_caption_ros.captioning import Bundle
from smart_caption_ros.captioning.vision import Vision, grid_boxes
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.engines import create_engine
from smart_caption_ros.files import sha256_of
from tests.detection.tiny_detectors import COLOURS_BGR, GREEN, write_yolox
from tests.training.commands import run_here
from tests.training.region_files import WIDTH, regions, write_tsv
from training.data.feature_store import FeatureStore
from training.features import main


def photograph(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    image = cv2.resize(coarse, (90 + seed, 70), interpolation=cv2.INTER_CUBIC)
    cv2.imwrite(str(path), image)
    return image


@pytest.fixture
def features(tiny_bundle):
    """The command with the tiny bundle; returns status, output and errors."""

    def run(*options, bundle=tiny_bundle):
        done = run_here(main, *(("--bundle", bundle) if bundle else ()), *options)
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_store_has_the_tokens_of_the_robots_vision_graph(features, tmp_path, tiny_bundle):
    images = {}
    for number in (3, 12):
        path = tmp_path / "photos" / f"val2014/COCO_val2014_{number:012d}.png"
        images[str(number)] = photograph(path, number)
    status, out, _ = features(tmp_path / "photos", "-o", tmp_path / "store", "--ids", "number")
    assert (status, out.split()[0]) == (0, "2")
    bundle = Bundle.load(tiny_bundle)
    vision, store = Vision(bundle, create_engine()), FeatureStore(tmp_path / "store")
    assert store.width == bundle.token_width
    assert store.source["vision_sha256"] == bundle.manifest["files"]["vision.onnx"]["sha256"]
    for image, frame in images.items():
        read, expected = store.read(image), vision.tokens(vision.preprocess(frame))[0]
        np.testing.assert_allclose(read.features, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
        np.testing.assert_allclose(read.boxes_xyxy, grid_boxes(*bundle.grid), rtol=1e-6)
        assert read.image_size == (frame.shape[1], 70)


def test_with_a_detector_the_store_has_a_token_for_the_photograph_and_one_for_each_object(
    features, tmp_path, tiny_bundle
):
    picture = np.full((64, 64, 3), 20, np.uint8)
    picture[:32, 32:] = COLOURS_BGR[GREEN]
    (tmp_path / "photos").mkdir()
    cv2.imwrite(str(tmp_path / "photos" / "a.png"), picture)
    cv2.imwrite(str(tmp_path / "photos" / "nothing.png"), np.zeros((64, 64, 3), np.uint8))
    options = ("-o", tmp_path / "store", "--detector", write_yolox(tmp_path / "detector.onnx"))
    assert features(tmp_path / "photos", *options)[0] == 0
    found = Detector.from_onnx(tmp_path / "detector.onnx", minimum_score=0.2).detect(picture)
    bundle, store = Bundle.load(tiny_bundle), FeatureStore(tmp_path / "store")
    vision, read = Vision(bundle, create_engine()), store.read("a.png")
    tokens = vision.tokens(vision.preprocess(picture))[0]
    boxes = [(0, 0, 64, 64), *(thing.box_xyxy for thing in found)]
    assert len(found) > 0
    np.testing.assert_allclose(read.boxes_xyxy, np.array(boxes[:50]) / 64, rtol=1e-6)
    np.testing.assert_allclose(read.features[0], tokens.mean(axis=0), rtol=1e-2, atol=1e-3 * np.abs(tokens).max())
    assert len(store.read("nothing.png").features) == 1
    assert store.source["detector_sha256"] == sha256_of(tmp_path / "detector.onnx")
    status, _, err = features(tmp_path / "photos", "-o", tmp_path / "store")
    assert (status, "another source" in err) == (1, True)


def test_broken_photographs_are_named_and_counted_and_the_others_are_stored(features, tmp_path):
    for number in range(3):
        photograph(tmp_path / "photos" / f"{number}.png", number)
    (tmp_path / "photos" / "1.png").write_bytes((tmp_path / "photos" / "1.png").read_bytes()[:20])
    (tmp_path / "photos" / "empty.jpg").touch()
    status, out, err = features(tmp_path / "photos", "-o", tmp_path / "store", "--batch-size", 2)
    assert status == 1
    assert "2 photographs of" in out
    assert "2 could not be read" in out
    assert "1.png, image 1.png: it is damaged or not an image" in err
    assert "empty.jpg, image empty.jpg: it is empty" in err
    assert sorted(image for image in ("0.png", "1.png", "2.png") if image in FeatureStore(tmp_path / "store")) == [
        "0.png", "2.png",
    ]  # fmt: skip


def test_a_killed_command_leaves_whole_images_and_resumes(features, tmp_path, tiny_bundle):
    for number in range(40):
        photograph(tmp_path / "photos" / f"{number}.png", number)
    options = [str(tmp_path / "photos"), "--save-every", "3", "--batch-size", "2", "--threads", "1"]
    command = [sys.executable, "-m", "training.features", "--bundle", str(tiny_bundle), *options]
    store = tmp_path / "store"
    process = subprocess.Popen([*command, "-o", str(store)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None and not (store / "shard-00001.json").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "ended before it was killed"
    assert 0 < len(FeatureStore(store)) < 40
    assert features(*options, "-o", store)[0] == 0
    assert features(*options, "-o", tmp_path / "undisturbed")[0] == 0
    resumed, undisturbed = FeatureStore(store), FeatureStore(tmp_path / "undisturbed")
    assert len(resumed) == len(undisturbed) == 40
    for number in range(40):
        found, expected = resumed.read(f"{number}.png"), undisturbed.read(f"{number}.png")
        np.testing.assert_allclose(found.features, expected.features, rtol=1e-3, atol=1e-2)
        np.testing.assert_array_equal(found.boxes_xyxy, expected.boxes_xyxy)
    assert not list(store.glob("*.unfinished"))


def test_published_features_are_converted(features, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, image in ((first, "7"), (second, "8")):
        folder.mkdir()
        write_tsv(folder, {image: regions(3)})
    files = (first / "features.tsv", second / "features.tsv")
    options = ("--from", "tsv", "--width", WIDTH, "--max-regions", 2, "-o", tmp_path / "store")
    status, out, _ = features(*files, *options, bundle=None)
    assert (status, out.split()[0]) == (0, "2")
    store = FeatureStore(tmp_path / "store")
    assert store.images() == ["7", "8"]
    assert store.read("8").features.shape == (2, WIDTH)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["photos/below", "--bundle", "TINY", "--detector", "nowhere.onnx"], "there is no such detector"),
        (["photos/below", "--detector", "d.onnx", "--minimum-score", "2"], "--minimum-score must lie between 0"),
        (["photos", "--bundle", "TINY"], "image id a.png is that of"),
        (["photos", "--bundle", "TINY", "--ids", "number"], "does not end in a number"),
        (["nothing", "--bundle", "TINY"], "no photographs in it"),
        (["nowhere", "--bundle", "TINY"], "no such folder"),
        (["features.tsv", "--from", "tsv"], "--from needs --max-regions"),
        (["features.tsv", "--from", "tsv", "--max-regions", "0"], "features are 16 wide instead of 2048"),
        (["features.tsv", "--from", "tsv", "--max-regions", "2", "--bundle", "TINY"], "make features of photographs"),
        (["features.tsv", "--from", "tsv", "--ids", "stem"], "--ids: is for photographs, not for --from"),
        (["photos/below", "--max-regions", "2"], "--max-regions: is for features of --from"),
        (["features.tsv", "photos"], "give one folder of photographs, not 2 paths"),
    ],
)
def test_wrong_options_and_files_are_refused_in_a_sentence(
    features, tiny_bundle, tmp_path, monkeypatch, arguments, complaint
):
    monkeypatch.chdir(tmp_path)
    photograph(tmp_path / "photos" / "a.png", 1)
    photograph(tmp_path / "photos" / "below" / "a.png", 2)
    (tmp_path / "nothing").mkdir()
    write_tsv(tmp_path, {"7": regions(3)})
    given = [tiny_bundle if word == "TINY" else word for word in arguments]
    status, _, err = features(*given, "-o", "store", bundle=None)
    assert (status, complaint in err, "Traceback" in err) == (2 if ": is for" in complaint else 1, True, False)
    assert not list(tmp_path.glob("store/shard*"))
