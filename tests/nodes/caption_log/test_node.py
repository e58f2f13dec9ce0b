"""The log node writes the published captions with the pose of the robot, and finds them again."""

import contextlib
import sys
import threading
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped
from rclpy.executors import MultiThreadedExecutor
from rclpy.parameter import Parameter
from smart_caption_ros.msg import Caption
from smart_caption_ros.srv import FindCaptions
from std_msgs.msg import Header

from smart_caption_ros import msg
from smart_caption_ros.caption_messages import to_message
from smart_caption_ros.nodes import diagnostics_publisher
from smart_caption_ros.nodes.caption_log import search_service
from smart_caption_ros.nodes.caption_log.node import CaptionLogNode
from smart_caption_ros.nodes.robot_pose import RobotPoseLookup
from smart_caption_ros.record import CaptionRecord
from tests.caption_log.rows import texts_of
from tests.nodes.fake_captioner import shade_caption
from tests.nodes.waiting import wait_for

STAMP_S = 1_790_000_000


def caption_message(shade, camera="front"):
    header = Header(stamp=Time(sec=STAMP_S + shade), frame_id="eye")
    return to_message(msg, CaptionRecord.of(shade_caption(shade, 64, 48), camera=camera), header)


class FakeTf:
    """Stand-in for tf2_ros, as far as robot_pose.py uses it: the robot was at x = 3 for ten seconds."""

    TransformException = LookupError

    class Buffer:
        def __init__(self, **settings):
            pass

        def lookup_transform(self, target, source, time):
            stamp_s = time.nanoseconds // 10**9 - STAMP_S
            if source != "base_link" or (time.nanoseconds and not 0 <= stamp_s < 10):
                raise LookupError
            header = Header(stamp=Time(sec=STAMP_S + (stamp_s if time.nanoseconds else 9)), frame_id=target)
            transform = SimpleNamespace(
                translation=SimpleNamespace(x=3.0, y=4.0, z=0.0), rotation=SimpleNamespace(x=0.0, y=0.0, z=0.0, w=1.0)
            )
            return SimpleNamespace(header=header, transform=transform)

    class TransformListener:
        def __init__(self, buffer, node, *, spin_thread):
            assert not spin_thread


@pytest.fixture
def domain(node, monkeypatch):
    """The node of the test, with the stand-in for tf2_ros installed."""
    monkeypatch.setattr(diagnostics_publisher, "PERIOD_S", 0.1)
    monkeypatch.setitem(sys.modules, "tf2_ros", FakeTf)
    return node


def log_node(domain, path, *ros_args, **given):
    values = {"path": str(path), **given}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    arguments = ["--ros-args", *ros_args]
    return CaptionLogNode(context=domain.context, parameter_overrides=overrides, namespace="robot7", cli_args=arguments)


@contextlib.contextmanager
def running(made, domain):
    """Serve the log node and the node of the test."""
    executor = MultiThreadedExecutor(num_threads=2, context=domain.context)
    executor.add_node(made)
    executor.add_node(domain)
    spinning = threading.Thread(target=executor.spin, daemon=True)
    spinning.start()
    yield made
    executor.shutdown()
    spinning.join()
    made.interrupt()
    assert made.close()
    made.destroy_node()


@pytest.fixture
def logger(domain, tmp_path, monkeypatch):
    monkeypatch.setattr(search_service, "MAX_LIMIT", 2)
    with running(log_node(domain, tmp_path / "log" / "captions.db"), domain) as made:
        yield made


class Diagnostics:
    """The newest status of the log node."""

    def __init__(self, domain, topic="/diagnostics"):
        self.level = b""
        self.values = {}
        domain.create_subscription(DiagnosticArray, topic, self._keep, 10)

    def _keep(self, message):
        (status,) = message.status
        self.level, self.values = status.level, {pair.key: pair.value for pair in status.values}

    def has_written(self, rows):
        return self.values.get("written") == str(rows)


def test_captions_are_written_with_their_place_and_found_by_the_service(domain, logger):
    diagnostics = Diagnostics(domain)
    publisher = domain.create_publisher(Caption, "/robot7/robot/caption", 10)
    wait_for(publisher.get_subscription_count, "subscription")
    for shade in (1, 1, 2, 60, 200):
        publisher.publish(caption_message(shade))
    wait_for(lambda: diagnostics.has_written(4), "rows")
    client = domain.create_client(FindCaptions, "/robot7/caption_log_node/find")
    assert client.wait_for_service(timeout_sec=20.0)

    def find(**fields):
        future = client.call_async(FindCaptions.Request(**fields))
        wait_for(future.done, "answer")
        return future.result()

    near = find(near=PointStamped(), radius=6.0)
    assert (near.success, near.message) == (True, "")
    assert [caption.header.stamp.sec - STAMP_S for caption in near.captions] == [2, 1]
    (pose,) = {(c.pose.header.frame_id, c.pose.pose.position.x, c.has_pose) for c in near.captions}
    assert pose == ("map", 3.0, True)
    newest = find(limit=50)
    assert [caption.header.stamp.sec - STAMP_S for caption in newest.captions] == [200, 60], "there is an upper bound"
    first = newest.captions[0]
    assert (first.robot, first.camera.rpartition("/")[2], first.has_pose) == ("robot7", "front", False)
    assert first.text == caption_message(200).text
    assert first.time.sec == STAMP_S + 200
    wrong = find(words="???")
    assert not wrong.success
    assert "there is no word in the search" in wrong.message
    values = diagnostics.values
    assert (diagnostics.level, values["captions in the log"], values["unchanged"]) == (DiagnosticStatus.OK, "4", "1")


def test_a_stamp_before_1970_does_not_end_a_feed_and_gets_the_newest_place(domain):
    lookup = RobotPoseLookup(domain, "map", "base_link", pytest.fail)
    pose = lookup(Header(stamp=Time(sec=-5), frame_id="eye"))
    assert (pose.frame_id, pose.position) == ("map", (3.0, 4.0, 0.0))


def test_the_log_node_is_one_node_and_remappings_reach_its_subscriptions(domain, tmp_path):
    rules = ("-r", "robot/caption:=/front/caption", "-r", "/diagnostics:=/robot7/diagnostics")
    logger = log_node(domain, tmp_path / "captions.db", *rules, caption_topics=["robot/caption"])
    remapped, other = (domain.create_publisher(Caption, f"/{name}/caption", 10) for name in ("front", "robot7/robot"))
    diagnostics = Diagnostics(domain, "/robot7/diagnostics")
    with running(logger, domain):
        wait_for(remapped.get_subscription_count, "subscription")
        remapped.publish(caption_message(3))
        wait_for(lambda: diagnostics.has_written(1), "row")
        assert other.get_subscription_count() == 0
        assert set(domain.get_node_names_and_namespaces()) == {("part", "/"), ("caption_log_node", "/robot7")}
        assert domain.count_subscribers("/robot7/diagnostics") == 2, "that of the log node, and of the test"
        assert domain.count_subscribers("/diagnostics") == 0


def test_a_caption_of_another_format_version_and_a_log_that_is_deleted_end_no_writer(domain, tmp_path):
    path = tmp_path / "captions.db"
    diagnostics = Diagnostics(domain)
    publisher = domain.create_publisher(Caption, "/robot7/robot/caption", 10)
    with running(log_node(domain, path, max_size_mb=1), domain):
        wait_for(publisher.get_subscription_count, "subscription")
        foreign = caption_message(1)
        foreign.format_version = 99
        for message in (foreign, caption_message(60)):
            publisher.publish(message)
        wait_for(lambda: diagnostics.has_written(2), "rows")
        assert diagnostics.level == DiagnosticStatus.OK
        path.unlink()
        wait_for(lambda: diagnostics.level == DiagnosticStatus.WARN, "the warning")
        assert "was deleted or moved" in diagnostics.values["last error"]
        publisher.publish(caption_message(200))
        wait_for(lambda: diagnostics.has_written(3), "row")
        assert texts_of(path) == [caption_message(200).text]


def test_a_log_that_cannot_be_opened_is_named(domain, tmp_path):
    path = tmp_path / "captions.db"
    path.write_text("no database" * 100)
    with pytest.raises(ValueError, match="it is not an SQLite database"):
        log_node(domain, path)
