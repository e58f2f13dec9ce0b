"""Fixtures and settings of all tests: data folder, tiny bundles, skipped marks, hypothesis."""

import gc
import json
import logging
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import cv2
import pytest
from hypothesis import HealthCheck, settings

from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.files import sha256_of
from smart_caption_ros.grounding import NounCoverage
from tests.frames import blobs

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SMART_CAPTION_DATA", ROOT.parent / "shared" / "data"))

# Processes that a test starts run the checkout's code, as the test itself does, not an installed copy of it.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

HAS_ROS = bool(find_spec("rclpy") and find_spec("smart_caption_ros.msg"))

# Before a test imports transformers or timm.
if find_spec("torchvision") and find_spec("torch"):
    from training.vision.torchvision_operators import declare_torchvision_operators

    declare_torchvision_operators()

# Test processes share the cores; a thread pool for each core in each of them would only make them wait.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine must not fail tests.
settings.register_profile("patient", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session")
def browser():
    """Chromium, where playwright and Chromium are there."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: the extra test")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("needs Chromium: apt install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture
def pictures(tmp_path):
    """A folder ``kitchen`` of three pictures."""
    folder = tmp_path / "kitchen"
    folder.mkdir()
    for number in range(3):
        cv2.imwrite(str(folder / f"{number}.png"), blobs(number, 48, 64))
    return folder


@pytest.fixture(autouse=True)
def _logging_as_it_was():
    """Restore the loggers that a command changes when a test runs it in this process."""
    loggers = [logging.getLogger(name) for name in ("smart_caption_ros", "smart_caption_ros.sources.source")]
    before = [(logger, logger.level, logger.handlers[:]) for logger in loggers]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


@pytest.fixture(scope="session")
def data_dir():
    """The folder of the shared data sets; tests that need it are skipped where there is none."""
    return DATA


@pytest.fixture(scope="session")
def reference_dir():
    """Cases computed by the published code of M2, X-LAN and X-Transformer: tests/reference/parity/README.md."""
    return ROOT / "tests" / "reference"


@pytest.fixture(scope="session")
def tiny_bundle():
    """A committed bundle with random weights, both forms of the captioner and no detector; it must not be changed."""
    return ROOT / "tests" / "bundles" / "tiny"


@pytest.fixture(scope="session")
def detecting_bundle():
    """A committed bundle whose vision graph detects cups, chairs and persons; it must not be changed."""
    return ROOT / "tests" / "bundles" / "detecting"


@pytest.fixture
def bundle_copy(tiny_bundle, tmp_path):
    """A copy of the tiny bundle that the test may change."""
    return Path(shutil.copytree(tiny_bundle, tmp_path / "bundle"))


@pytest.fixture
def bundle_with_detector(bundle_copy):
    """A copy of the tiny bundle with a YOLOX graph that finds coloured squares; the test may change it."""
    from tests.detection.tiny_detectors import write_yolox

    detector = write_yolox(bundle_copy / "detector.onnx")
    manifest = json.loads((bundle_copy / "manifest.json").read_text())
    manifest |= {"class_names": list(COCO_CLASSES), "detector": {"layout": "yolox", "minimum_score": 0.75}}
    manifest["files"][detector.name] = {"bytes": detector.stat().st_size, "sha256": sha256_of(detector)}
    (bundle_copy / "manifest.json").write_text(json.dumps(manifest))
    return bundle_copy


@pytest.fixture(scope="session")
def coverage():
    """The noun tagger and the word vectors that ship with the package."""
    return NounCoverage.load()


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory):
    """A random captioner with a backbone, as training saves it; needs torch."""
    from tests.tiny_model import tiny_trained

    path = tmp_path_factory.mktemp("tiny") / "best.safetensors"
    tiny_trained().save(path)
    return path


class ModuleThatNeedsRos(pytest.Module):
    def collect(self):
        pytest.skip("needs ROS 2 and the built messages: run it through `make test`")


def pytest_pycollect_makemodule(module_path, parent):
    """Skip modules of the folders that need ROS before their imports fail without it."""
    if in_ros_folder(module_path) and not HAS_ROS:
        return ModuleThatNeedsRos.from_parent(parent, path=module_path)
    return None


def in_ros_folder(path):
    folder = path.relative_to(ROOT / "tests").parts[0]
    return folder in ("nodes", "system") and path.name not in ("test_launching.py", "test_report.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if in_ros_folder(item.path):
            item.add_marker(pytest.mark.needs_ros)
        if "data_dir" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.needs_data)
    if "PYTEST_XDIST_WORKER" in os.environ:
        from tests.shared_out import place_of

        items.sort(key=lambda item: place_of(item.nodeid))


def pytest_collection_finish():
    """Keep what the imports made out of later garbage collections; with torch each takes most of a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from tests.shared_out import WholeUnits

    config.option.loadscopereorder = False
    return WholeUnits(config, log)


def pytest_runtest_setup(item):
    if item.get_closest_marker("needs_data") and not DATA.is_dir():
        pytest.skip(f"no data sets at {DATA}: set SMART_CAPTION_DATA to their folder")
    if item.get_closest_marker("needs_ros") and not HAS_ROS:
        pytest.skip("needs ROS 2 and the built messages: run it through `make test`")
    if item.get_closest_marker("needs_gpu") and not Path("/dev/nvidiactl").exists():
        pytest.skip("needs an NVIDIA GPU")
