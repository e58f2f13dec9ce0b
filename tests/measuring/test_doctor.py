"""The doctor sees what is broken, and what is merely not there."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from smart_caption_ros.cli.app import app
from smart_caption_ros.engines import EngineReport
from smart_caption_ros.measuring import doctor
from smart_caption_ros.measuring.doctor import Check, Status, is_healthy, run_checks
from tests.cli_runner import cli_runner

VARIABLES = ["RMW_IMPLEMENTATION", "FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"]
SHARED_MEMORY = """<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles"><transport_descriptors>
<transport_descriptor><transport_id>a</transport_id><type>SHM</type><segment_size>67108864</segment_size>
</transport_descriptor></transport_descriptors></profiles>"""


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def by_name(checks):
    return {check.name: check for check in checks}


@pytest.fixture(scope="module")
def all_checks():
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        return by_name(run_checks())


def pretend_ros(monkeypatch, *, installed):
    monkeypatch.setattr(doctor, "find_spec", lambda name: object() if installed else None)


def test_everything_that_the_tests_need_is_found_to_work(all_checks):
    checks = all_checks
    for name in ("Python", "smart_caption_ros", "numpy", "OpenCV", "Pillow", "ONNX Runtime"):
        assert checks[name].status is Status.OK
    assert checks["numpy"].found == __import__("numpy").__version__
    assert checks["engine onnxruntime-cpu"].status is Status.OK
    assert checks["default bundle"].status is Status.OK, checks["default bundle"].found
    assert checks["captioning"].status is Status.OK, checks["captioning"].found


def test_a_missing_library_is_broken_and_an_optional_one_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "rosbags.rosbag2", None)
    checks = by_name(doctor._check_libraries())
    assert checks["Pillow"].status is Status.BROKEN
    assert checks["Pillow"].remedy == "pip install 'Pillow'"
    assert checks["rosbags"].status is Status.ABSENT
    assert checks["rosbags"].remedy == "pip install 'smart_caption_ros[bags]'"
    assert not is_healthy(checks.values())


@pytest.mark.parametrize(("other", "status"), [(True, Status.ABSENT), (False, Status.BROKEN)])
def test_one_working_engine_is_enough(monkeypatch, other, status):
    reports = [EngineReport("fast", False, "no GPU", "buy one"), EngineReport("slow", other, "x", "")]
    monkeypatch.setattr("smart_caption_ros.engines.available_engines", lambda: reports)
    assert by_name(doctor._check_engines())["engine fast"] == Check("engine fast", status, "no GPU", "buy one")


def test_bundles_are_found_with_what_they_need(tmp_path):
    tiny = Path(__file__).resolve().parents[1] / "bundles" / "tiny"
    shutil.copytree(tiny, tmp_path / "bundles" / "good")
    shutil.copytree(tiny, tmp_path / "bad")
    (tmp_path / "bad" / "vocabulary.txt").write_text("changed")
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "manifest.json").write_text("{}")
    checks = by_name(doctor._check_other_bundles(tmp_path))
    assert checks.keys() == {"bundle good", "bundle bad"}
    assert checks["bundle good"].status is Status.OK
    assert "MB of memory for its weights, and any CPU, or TensorRT (float32)" in checks["bundle good"].found
    assert checks["bundle bad"].status is Status.WARNING
    assert "vocabulary.txt" in checks["bundle bad"].found


def test_without_ros_nothing_is_broken(monkeypatch):
    pretend_ros(monkeypatch, installed=False)
    checks = by_name([*doctor._check_ros(), *doctor._check_fast_dds_profile()])
    assert checks["rclpy"].status is Status.ABSENT
    assert "make demo" in checks["rclpy"].remedy
    assert checks["Fast DDS profile"].status is Status.ABSENT
    assert is_healthy(checks.values())


@pytest.mark.needs_ros
def test_with_ros_a_node_is_made_and_a_message_published(all_checks):
    checks = all_checks
    assert checks["rclpy"].status is Status.OK
    assert checks["middleware"].status is Status.OK, checks["middleware"].found
    assert checks["messages"].status is Status.OK, checks["messages"].found


@pytest.mark.needs_ros
def test_a_middleware_that_ends_the_process_is_survived_and_named(monkeypatch):
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_nonsense_cpp")
    check = by_name(doctor._check_ros())["middleware"]
    assert check.status is Status.BROKEN
    assert "rmw_nonsense_cpp" in check.found
    assert "RMW_IMPLEMENTATION=rmw_fastrtps_cpp" in check.remedy


@pytest.mark.parametrize(
    ("content", "status", "found"),
    [
        (None, Status.BROKEN, "which is not there"),
        (SHARED_MEMORY, Status.OK, "64 MiB of shared memory"),
        ("<profiles/>", Status.WARNING, "sets up no shared memory"),
        ("<profiles", Status.BROKEN, "cannot be read"),
    ],
)
def test_the_fast_dds_profile_is_looked_into(monkeypatch, tmp_path, content, status, found):
    pretend_ros(monkeypatch, installed=True)
    path = tmp_path / "profile.xml"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("FASTRTPS_DEFAULT_PROFILES_FILE", str(path))
    (check,) = doctor._check_fast_dds_profile()
    assert check.status is status
    assert found in check.found
    assert check.remedy.startswith("export FASTRTPS_DEFAULT_PROFILES_FILE=/") == (status is not Status.OK)


def test_a_profile_that_is_not_set_is_a_warning_with_the_line_that_sets_it(monkeypatch):
    pretend_ros(monkeypatch, installed=True)
    (check,) = doctor._check_fast_dds_profile()
    assert (check.status, "is not set" in check.found) == (Status.WARNING, True)
    monkeypatch.setenv("FASTDDS_DEFAULT_PROFILES_FILE", "profile.xml")
    assert "ROS 2 Jazzy reads FASTRTPS_DEFAULT_PROFILES_FILE" in doctor._check_fast_dds_profile()[0].found
    shipped = Path(check.remedy.partition("=")[2])
    monkeypatch.setenv("FASTRTPS_DEFAULT_PROFILES_FILE", str(shipped))
    assert doctor._check_fast_dds_profile()[0].status is Status.OK


@pytest.mark.parametrize(("status", "exit_code"), [("ok", 0), ("absent", 0), ("warning", 0), ("broken", 1)])
def test_the_exit_status_is_1_where_something_is_broken(monkeypatch, status, exit_code):
    def run_checks(on_check):
        on_check("something")
        return [Check("this", Status.OK, "fine"), Check("that", Status(status), "so so", "do something")]

    monkeypatch.setattr(doctor, "run_checks", run_checks)
    result = cli_runner().invoke(app, ["doctor"])
    assert result.exit_code == exit_code
    assert "that" in result.stdout
    assert "-> do something" in result.stdout
    as_json = cli_runner().invoke(app, ["doctor", "--json"])
    assert as_json.exit_code == exit_code
    assert json.loads(as_json.stdout) == {
        "healthy": exit_code == 0,
        "checks": [
            {"name": "this", "status": "ok", "found": "fine", "remedy": ""},
            {"name": "that", "status": status, "found": "so so", "remedy": "do something"},
        ],
    }
