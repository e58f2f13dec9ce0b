"""From the start of a node to its end, in the test's own process."""

import os
import tempfile
import threading

import pytest
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node

from smart_caption_ros.files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file
from smart_caption_ros.nodes import running
from smart_caption_ros.nodes.demo.processes import free_domain_id
from smart_caption_ros.nodes.running import run_node


@pytest.fixture(autouse=True)
def _domain(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", str(free_domain_id()))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


class Ticking(Node):
    """Calls `tick` of a subclass a hundred times a second."""

    def __init__(self):
        super().__init__("ticking")
        self.exit_status = None
        self.ticks = 0
        self.closed = 0
        self.create_timer(0.01, self._tick)

    def _tick(self):
        self.ticks += 1
        self.tick()

    def tick(self):
        raise NotImplementedError

    def interrupt(self):
        assert not self.closed

    def close(self):
        self.closed += 1
        return True


def run(node_type):
    made = []

    def make():
        made.append(node_type())
        return made[-1]

    status = run_node("test_running", make, [])
    return status, made[0]


def test_a_callback_that_fails_does_not_end_the_process_and_the_status_that_the_node_sets_does():
    class Failing(Ticking):
        def tick(self):
            if self.ticks <= 3:
                raise RuntimeError("a mistake of ours")
            self.exit_status = 7

    status, node = run(Failing)
    assert (status, node.closed) == (7, 1)
    assert node.ticks > 3


def test_the_node_ends_quietly_although_the_executor_loses_its_handles_amid_a_call(monkeypatch, capfd):
    """The executor of rclpy does so on a busy machine."""

    class Ended(Ticking):
        def __init__(self):
            super().__init__()
            self.exit_status = 0

    class Losing(MultiThreadedExecutor):
        ended = threading.Event()

        def spin_once(self):
            self.ended.wait(60)
            raise AttributeError("'NoneType' object has no attribute 'handle'")

        def shutdown(self):
            self.ended.set()
            return super().shutdown()

    monkeypatch.setattr(running, "MultiThreadedExecutor", Losing)
    status, _ = run(Ended)
    assert status == 0
    assert "handle" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--ros-args", "--params-file", "/no/such/file"], 1, "/no/such/file"),
        (["--ros-args", "-r", "not a remap"], 1, "not a remap"),
        (["--ros-args", "--no-such-option"], 1, "--no-such-option"),
        (["--bundle", "x"], 2, "unrecognized arguments: --bundle"),
        (["--help"], 0, "--params-file FILE"),
    ],
)
def test_no_node_is_made_for_wrong_arguments_or_help(arguments, status, words, capsys):
    assert run_node("test_running", lambda: pytest.fail("made"), arguments) == status
    assert words in "".join(capsys.readouterr())


OWN = str(config_file(FAST_DDS_PROFILE))


class ProfileReader(Ticking):
    """Ends at once, and keeps the Fast DDS profile of its process."""

    def __init__(self):
        self.profile = os.environ.get(PROFILE_VARIABLE)
        super().__init__()

    def tick(self):
        self.exit_status = 0


@pytest.mark.parametrize(
    ("variable", "value", "used"),
    [
        ("ROS_LOG_LEVEL_OF_NOBODY", "", OWN),
        (PROFILE_VARIABLE, os.devnull, os.devnull),
        (PROFILE_VARIABLE, "", None),
        ("ROS_LOCALHOST_ONLY", "1", None),
        ("ROS_LOCALHOST_ONLY", "0", OWN),
        ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST", None),
        ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF", None),
        ("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET", OWN),
        ("ROS_STATIC_PEERS", "10.0.0.1", None),
        ("FASTDDS_DEFAULT_PROFILES_FILE", os.devnull, None),
        ("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4", None),
    ],
)
def test_the_process_has_a_fast_dds_profile_unless_the_user_has_chosen_otherwise(
    monkeypatch, capfd, variable, value, used
):
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE")
    monkeypatch.delenv(PROFILE_VARIABLE, raising=False)
    monkeypatch.setenv(variable, value)
    status, node = run(ProfileReader)
    assert (status, node.profile) == (0, used)
    if used != os.devnull:
        assert "XMLPARSER" not in capfd.readouterr().err
    os.environ.pop(PROFILE_VARIABLE, None)


def test_every_start_with_an_unwritable_log_folder_uses_the_same_temporary_one(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in range(2):
        monkeypatch.setenv("ROS_LOG_DIR", "/proc/no_such_folder")
        status, _ = run(ProfileReader)
        assert status == 0
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0, "nobody else reads it"
    assert any(folder.iterdir())
