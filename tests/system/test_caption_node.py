"""The caption node as a process, as a robot's other nodes see it: topics, services, parameters, signals."""

import array
import os
import re
import signal
from pathlib import Path

import cv2
import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParametersAtomically
from rclpy.duration import Duration
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, Image
from smart_caption_ros.msg import Caption
from smart_caption_ros.srv import DescribeImage, DescribeLatest
from std_msgs.msg import Header, String
from std_srvs.srv import SetBool

from smart_caption_ros.nodes import caption_command
from tests.nodes.fake_captioner import BREAKS_THE_ENGINE, NOTHING_TO_SAY, UNSURE, image_fields, painted
from tests.system.conftest import MATCHING_S, Diagnostics
from tests.system.fake_engine_node import LOADS, SLOW

NODE = "smart_caption_ros.nodes.caption_command"
TINY = Path(__file__).resolve().parents[1] / "bundles" / "tiny"
RELIABLE_INPUT = (
    "-p",
    "qos_overrides./image.subscription.reliability:=reliable",
    "-p",
    "qos_overrides./image.subscription.depth:=100",
)


class User:
    """Publishes images and reads the captions of one caption node."""

    def __init__(self, robot, image_topic="/image", caption_topic="/robot/caption"):
        self.robot = robot
        self.captions = robot.listen(Caption, caption_topic)
        self.texts = robot.listen(String, f"{caption_topic}/text")
        self.images = robot.node.create_publisher(Image, image_topic, 10)
        robot.wait_for(
            lambda: (
                self.images.get_subscription_count()
                and robot.node.count_publishers(f"{caption_topic}/text")
                and self._hears(caption_topic)
            ),
            "node that listens and captions",
        )
        robot.spin_for(MATCHING_S)

    def _hears(self, caption_topic):
        return all(s.get_publisher_count() for s in self.robot.node.subscriptions if caption_topic in s.topic_name)

    def publish(self, image=None, shade=100, frame_id="eye"):
        """Publishes an image, stamped now; returns its header."""
        image = image or Image(**image_fields(shade))
        image.header = Header(stamp=self.robot.node.get_clock().now().to_msg(), frame_id=frame_id)
        self.images.publish(image)
        return image.header

    def answer_to(self, header):
        return self.robot.wait_for(
            lambda: next((c for c in self.captions if c.header == header), None), "answer to an image"
        )

    def ask(self, image=None, shade=100):
        return self.answer_to(self.publish(image, shade))


def user_of(robot):
    """A user of a caption node with the fake engine, on a machine that may be busy: a second late is no error."""
    robot.start_caption_node(*RELIABLE_INPUT, "-p", "max_age_s:=60.0")
    return User(robot)


@pytest.fixture(scope="module")
def shared_user(shared_robot):
    return user_of(shared_robot)


@pytest.fixture
def user(shared_user):
    """The user of a node that several tests share, who has heard nothing yet."""
    shared_user.captions.clear()
    shared_user.texts.clear()
    shared_user.robot.set_parameter("/caption_node", "min_calibrated_confidence", 0.0)
    return shared_user


def test_captions_arrive_with_the_header_of_their_image(user):
    for shade in (10, 20, 30):
        header = user.publish(shade=shade, frame_id=f"eye_{shade}")
        caption = user.answer_to(header)
        assert caption.header.frame_id == f"eye_{shade}"
        assert (caption.status, caption.text) == (Caption.STATUS_OK, f"shade {shade}")
        assert [word.text for word in caption.words] == ["shade", str(shade)]
        assert caption.words[0].box.x2 == 32.0
        assert caption.model == "fake model"
        assert caption.alternatives[0].text == "another shade"
        assert [noun.noun for noun in caption.nouns] == ["shade", str(shade)]
        assert not caption.objects, "nobody detects any"
        assert not caption.coverage.valid
        assert caption.timing.vision_ms == pytest.approx(2)
        assert 0 < caption.timing.age_at_start_ms < 60_000
    user.robot.wait_for(lambda: len(user.texts) == 3, "text for each caption")
    assert [text.data for text in user.texts] == ["shade 10", "shade 20", "shade 30"]


def test_the_newest_frame_wins_while_the_engine_is_slow_and_signals_amid_the_work_end_the_node_cleanly(
    robot, diagnostics
):
    process = robot.start_caption_node(*RELIABLE_INPUT, "-p", "max_age_s:=0.0", kind=SLOW)
    user = User(robot)
    headers = []
    for shade in range(100, 140):
        headers.append(user.publish(shade=shade))
        robot.spin_for(0.02)
    user.answer_to(headers[-1])
    stamps = [header.stamp for header in headers]
    answered = [stamps.index(caption.header.stamp) for caption in user.captions]
    assert answered == sorted(set(answered)), "in order, none twice"
    assert len(answered) < len(headers) / 2, "a slow engine cannot answer all of them"
    gaps = np.diff([-1, *answered]) - 1
    assert [caption.timing.dropped_frames for caption in user.captions] == gaps.tolist(), "every drop is counted"
    diagnostics.wait_for({"images answered": str(len(answered))})
    assert int(diagnostics.values["images received"]) == len(headers)
    assert int(diagnostics.values["images dropped for newer ones"]) == len(headers) - len(answered)
    for _ in range(5):
        user.publish()
        robot.spin_for(0.05)
    for _ in range(3):  # a terminal, a launch file and an impatient person
        os.kill(process.pid, signal.SIGINT)
        robot.spin_for(0.05)
    robot.wait_for(lambda: process.exit_status is not None, "end of the process")
    assert process.exit_status == 0, process.log_tail()
    assert "Traceback" not in process.log.read_text()


def assert_ended_quietly(robot, process, within_s=60.0):
    robot.wait_for(lambda: process.exit_status is not None, "end of the process", within_s)
    log = process.log.read_text()
    assert process.exit_status == 0, log
    for word in ("Traceback", "rror", "exception", "invalid"):
        assert word not in log


def test_at_the_start_a_signal_ends_the_node_quietly_and_a_wrong_parameter_ends_it_with_status_1(robot):
    """The moments are tenths of a second after the command has taken over the signals: imports, DDS, loading."""
    wrong = robot.start(NODE, "-p", "max_age_s:=-1.0")
    processes = []
    for number, tenths in zip((signal.SIGINT, signal.SIGTERM) * 2, (0, 5, 12, 20), strict=True):
        process = robot.start(NODE)
        robot.wait_for(lambda: catches_sigterm(process.pid), "handler of the signals")  # noqa: B023
        robot.spin_for(tenths / 10)
        os.kill(process.pid, number)
        processes.append(process)
    for process in processes:
        assert_ended_quietly(robot, process)
    robot.wait_for(lambda: wrong.exit_status is not None, "end of the process")
    assert wrong.exit_status == 1


def catches_sigterm(pid):
    (caught,) = re.findall(r"^SigCgt:\t(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def test_a_node_that_loads_answers_its_services_and_ends_at_a_signal(robot, diagnostics):
    process = robot.start_caption_node(kind=LOADS)
    robot.wait_for(lambda: robot.lifecycle_state() == "configuring", "begin of loading")
    (value,) = robot.call(GetParameters, "/caption_node/get_parameters", names=["engine"]).values
    assert value.string_value == "auto"
    assert robot.set_parameter("/caption_node", "max_rate_hz", 9.0).successful
    assert "unconfigured" in robot.set_parameter("/caption_node", "engine", "onnxruntime-cpu").reason
    assert robot.call(SetBool, "/caption_node/enable", data=False).success
    diagnostics.wait_for_next()
    assert robot.lifecycle_state() == "configuring"
    os.kill(process.pid, signal.SIGINT)
    assert_ended_quietly(robot, process)


def test_malformed_images_get_a_status_and_a_diagnostic_and_the_node_lives_on(user):
    diagnostics = Diagnostics(user.robot)
    diagnostics.wait_for_next()
    answered = int(diagnostics.values["images answered"])
    large = {"height": 7200, "width": 7200, "step": 7200, "data": array.array("B", bytes(7200 * 7200))}
    malformed = {
        "unknown encoding": Image(**image_fields(100, encoding="k" * 1_000_000)),
        "no data at all": Image(**image_fields(100, data=array.array("B"))),
        "an empty message": Image(),
        "more pixels than the limit": Image(encoding="mono8", **large),
        "an engine that fails": Image(**image_fields(BREAKS_THE_ENGINE)),
    }
    for fault, image in malformed.items():
        caption = user.ask(image)
        assert caption.status == Caption.STATUS_ERROR, fault
        assert 0 < len(caption.status_message) < 1000, fault
        assert not caption.text, fault
    assert caption.status_message.endswith("EngineError: the engine has burnt out")
    user.images.publish(b"\0\1\0\0 these are not the fields of an image")  # ROS passes over it
    assert user.ask(shade=9).status == Caption.STATUS_OK
    diagnostics.wait_for({"images answered": str(answered + len(malformed) + 1)}, "images could not be captioned: ")
    assert diagnostics.status.level == DiagnosticStatus.ERROR
    assert diagnostics.values["images lost on the way"] == "1"
    user.robot.wait_for(lambda: user.texts, "text")
    assert [text.data for text in user.texts] == ["shade 9"], "errors are not spoken"


def test_every_kind_of_answer_has_its_status(user):
    user.robot.set_parameter("/caption_node", "min_calibrated_confidence", 0.5)
    assert user.ask(shade=NOTHING_TO_SAY).status == Caption.STATUS_NOTHING_FOUND
    unsure = user.ask(shade=UNSURE)
    assert (unsure.status, unsure.text, len(unsure.words)) == (Caption.STATUS_LOW_CONFIDENCE, "", 0)
    assert unsure.status_message.startswith(f'"shade {UNSURE}" is refused: its calibrated confidence 0.100 is below')
    old = Header(stamp=Time(sec=1_000_000_000), frame_id="eye")
    image = Image(**image_fields(100), header=old)
    user.images.publish(image)
    stale = user.answer_to(old)
    assert (stale.status, stale.text) == (Caption.STATUS_STALE, "")
    assert "max_age_s is 60" in stale.status_message
    assert "use_sim_time" in stale.status_message, "the age is absurd"
    for seconds in (-1, -(2**31), 2**31 - 1):
        impossible = Header(stamp=Time(sec=seconds, nanosec=2**32 - 1), frame_id="eye")
        image.header = impossible
        user.images.publish(image)
        status = Caption.STATUS_STALE if seconds < 0 else Caption.STATUS_ERROR
        answer = user.answer_to(impossible)
        assert answer.status == status, "a stamp of the future is not old"
        assert seconds < 0 or answer.status_message.endswith("the clocks of camera and node differ")
        described = user.robot.call(DescribeImage, "/caption_node/describe_image", image=image).caption
        assert (described.status, described.header) == (Caption.STATUS_OK, impossible)
    unstamped = Header(frame_id="no_clock")
    user.images.publish(Image(**image_fields(100), header=unstamped))
    assert user.answer_to(unstamped).status == Caption.STATUS_OK
    user.robot.wait_for(lambda: user.texts, "text")
    assert [text.data for text in user.texts] == ["shade 100"]


def test_age_follows_the_simulated_clock(robot, diagnostics):
    robot.start_caption_node("-p", "use_sim_time:=true", *RELIABLE_INPUT)
    user = User(robot)
    diagnostics.wait_for_next()  # although the clock stands still
    without_clock = user.ask()
    assert (without_clock.status, without_clock.timing.age_at_start_ms) == (Caption.STATUS_OK, 0)
    diagnostics.wait_for(message="nothing arrives on /clock")
    assert diagnostics.status.level == DiagnosticStatus.WARN
    clock = robot.publisher(Clock, "/clock")

    def answer_at_100_s(image_sec, nanosec):
        header = Header(stamp=Time(sec=image_sec, nanosec=nanosec), frame_id="simulated")

        def answer():
            clock.publish(Clock(clock=Time(sec=100)))
            robot.spin_for(0.1)  # the clock has to arrive before the image
            user.images.publish(Image(**image_fields(100), header=header))
            robot.spin_for(0.1)
            return next((c for c in user.captions if c.header == header and c.timing.age_at_start_ms > 0), None)

        return robot.wait_for(answer, "answer")

    fresh = answer_at_100_s(99, 500_000_000)
    assert (fresh.status, fresh.timing.age_at_start_ms) == (Caption.STATUS_OK, pytest.approx(500))
    stale = answer_at_100_s(90, 0)
    assert (stale.status, stale.timing.age_at_start_ms) == (Caption.STATUS_STALE, pytest.approx(10_000))


def test_lifecycle_transitions_start_and_stop_the_work_also_without_a_home_variable(robot, diagnostics, monkeypatch):
    with monkeypatch.context() as environment:
        environment.delenv("ROS_LOG_DIR")
        environment.delenv("HOME")
        process = robot.start_caption_node("-p", "autostart:=false", *RELIABLE_INPUT)

    assert robot.lifecycle_state() == "unconfigured"
    diagnostics.wait_for({"state": "unconfigured"})
    image = Image(**image_fields(100))
    assert "configure" in robot.call(DescribeImage, "/caption_node/describe_image", image=image).caption.status_message
    assert not robot.change_state("activate"), "there is nothing to activate yet"
    assert robot.change_state("configure")
    assert robot.lifecycle_state() == "inactive"
    assert not robot.node.count_subscribers("/image")
    described = robot.call(DescribeImage, "/caption_node/describe_image", image=image).caption
    assert described.text == "shade 100", "a configured node describes what it is given"
    assert "inactive" in robot.call(DescribeLatest, "/caption_node/describe_latest").caption.status_message
    assert robot.change_state("activate")
    assert not robot.change_state("configure"), "a lifecycle manager has to start the node itself"
    assert robot.lifecycle_state() == "active"
    user = User(robot)
    assert user.ask(shade=8).text == "shade 8"
    assert robot.change_state("deactivate")
    robot.wait_for(lambda: not robot.node.count_subscribers("/image"), "end of the subscription")
    assert robot.change_state("cleanup")
    assert robot.lifecycle_state() == "unconfigured"
    diagnostics.wait_for({"state": "unconfigured", "engine": ""})
    robot.wait_for(lambda: not robot.node.count_publishers("/robot/caption"), "end of the captions")
    assert robot.change_state("unconfigured_shutdown")
    assert_ended_quietly(robot, process)


def test_parameters_change_while_running_and_bad_values_are_refused(user):
    robot = user.robot

    def set_parameter(name, value):
        return robot.set_parameter("/caption_node", name, value)

    assert user.ask(shade=UNSURE).status == Caption.STATUS_OK
    assert set_parameter("min_calibrated_confidence", 0.5).successful
    assert user.ask(shade=UNSURE).status == Caption.STATUS_LOW_CONFIDENCE
    for name, value, reason in (
        ("min_calibrated_confidence", 1.5, "range"),
        ("min_calibrated_confidence", "high", "type"),
        ("trigger", "telepathy", "one of always, change, request"),
        ("bundle", "/elsewhere", "read-only"),
        ("threads", 2, "unconfigured"),
        ("autostart", False, "read-only"),
    ):
        result = set_parameter(name, value)
        assert not result.successful, name
        assert reason in result.reason, result.reason
    request = {"min_calibrated_confidence": 0.0, "max_rate_hz": -1.0}
    parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in request.items()]
    atomically = robot.call(SetParametersAtomically, "/caption_node/set_parameters_atomically", parameters=parameters)
    assert not atomically.result.successful
    assert user.ask(shade=UNSURE).status == Caption.STATUS_LOW_CONFIDENCE, "what was refused changed nothing"
    (description,) = robot.call(
        DescribeParameters, "/caption_node/describe_parameters", names=["min_calibrated_confidence"]
    ).descriptors
    assert "STATUS_LOW_CONFIDENCE" in description.description
    assert description.floating_point_range[0].to_value == 1.0


def test_describe_services_answer_and_enable_pauses(robot, diagnostics):
    user = user_of(robot)
    nothing_yet = robot.call(DescribeLatest, "/caption_node/describe_latest").caption
    assert nothing_yet.status == Caption.STATUS_ERROR
    assert nothing_yet.status_message == "no image has arrived on /image yet"
    old = Image(**image_fields(55), header=Header(stamp=Time(sec=1), frame_id="archive"))
    described = robot.call(DescribeImage, "/caption_node/describe_image", image=old).caption
    assert (described.status, described.text, described.header) == (Caption.STATUS_OK, "shade 55", old.header)
    broken = Image(**image_fields(55, encoding="no"))
    assert robot.call(DescribeImage, "/caption_node/describe_image", image=broken).caption.status == 4
    assert not user.captions, "a service's answer is the caller's alone"

    user.ask(shade=70)
    assert robot.call(SetBool, "/caption_node/enable", data=False).message == "captioning is off"
    header = user.publish(shade=71)
    diagnostics.wait_for({"images passed over": "1"})
    assert all(caption.header != header for caption in user.captions)
    robot.set_parameter("/caption_node", "max_age_s", 0.5)
    now = robot.node.get_clock().now()

    def describe_latest(shade, age_s):
        header = Header(stamp=(now - Duration(seconds=age_s)).to_msg())
        user.images.publish(Image(**image_fields(shade), header=header))

        def described():
            caption = robot.call(DescribeLatest, "/caption_node/describe_latest").caption
            return caption if caption.header == header else None

        return robot.wait_for(described, "caption of the latest image")

    assert describe_latest(73, age_s=2.0).text == "shade 73", "older than max_age_s, and not too old for a request"
    assert describe_latest(74, age_s=61.0).status == Caption.STATUS_STALE
    robot.set_parameter("/caption_node", "max_age_s", 60.0)
    assert robot.call(SetBool, "/caption_node/enable", data=True).success
    assert user.ask(shade=72).text == "shade 72"


def test_a_lazy_camera_rests_while_nobody_subscribes_and_wakes_for_a_listener_and_for_a_request(robot, diagnostics):
    robot.start_caption_node("-p", "lazy:=true", "-p", "max_age_s:=0.0")
    images = robot.node.create_publisher(Image, "/image", 1)
    robot.node.create_timer(0.1, lambda: images.publish(Image(**image_fields(90))))

    diagnostics.wait_for({"resting": "yes", "times at rest": "1", "images received": "0"})
    assert diagnostics.status.level == DiagnosticStatus.OK
    assert diagnostics.status.message == "resting, because nobody subscribes to the captions"
    assert images.get_subscription_count() == 0

    described = robot.call(DescribeLatest, "/caption_node/describe_latest").caption
    assert (described.status, described.text) == (Caption.STATUS_OK, "shade 90")
    diagnostics.wait_for({"resting": "yes", "times at rest": "2"})

    texts = []
    for topic, kind in (("text", String), ("image", Image)):
        listening = robot.node.create_subscription(kind, f"/robot/caption/{topic}", texts.append, 10)
        robot.wait_for(lambda: texts, f"message on {topic}")
        diagnostics.wait_for({"resting": "no", "times at rest": "2" if kind is String else "3"})
        robot.node.destroy_subscription(listening)
        texts.clear()
        robot.wait_for(lambda: images.get_subscription_count() == 0, "rest")
    assert robot.set_parameter("/caption_node", "lazy", False).successful
    robot.wait_for(images.get_subscription_count, "subscription")


def test_compressed_images_are_taken_where_nobody_publishes_raw_ones(robot):
    robot.start_caption_node("-p", "qos_overrides./image/compressed.subscription.reliability:=reliable")
    captions = robot.listen(Caption, "/robot/caption")
    compressed = robot.publisher(CompressedImage, "/image/compressed")
    robot.wait_for(lambda: robot.node.count_publishers("/robot/caption"), "captions")
    encoded, jpeg = cv2.imencode(".jpg", painted(120))
    assert encoded

    def answer():
        header = Header(stamp=robot.node.get_clock().now().to_msg(), frame_id="jpeg_eye")
        compressed.publish(CompressedImage(header=header, format="jpeg", data=array.array("B", jpeg.tobytes())))
        robot.spin_for(0.1)
        return captions[-1] if captions else None

    caption = robot.wait_for(answer, "caption")
    assert (caption.text, caption.header.frame_id) == ("shade 120", "jpeg_eye")
    compressed.publish(b"\0\1\0\0 these are not the fields of an image")
    raw = robot.publisher(Image, "/image")

    def answer_to_raw():
        raw.publish(Image(**image_fields(121)))
        robot.spin_for(0.1)
        return any(caption.text == "shade 121" for caption in captions)

    robot.wait_for(answer_to_raw, "caption of the raw topic, once it is there")
    images = robot.node.get_subscriptions_info_by_topic("/image")
    assert {subscription.qos_profile.reliability for subscription in images} == {ReliabilityPolicy.BEST_EFFORT}
    publishers = robot.node.get_publishers_info_by_topic("/robot/caption")
    assert {publisher.qos_profile.reliability for publisher in publishers} == {ReliabilityPolicy.RELIABLE}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-p", "bundle:=/no/such/bundle"], "/no/such/bundle"),
        (["-p", "detector:=/no/such.onnx"], "/no/such.onnx: there is no such detector"),
        (["-p", "detection_classes:=/no/such.txt"], "the class names cannot be read: No such file or directory"),
        (["-p", "max_age_s:=-1.0"], "parameter max_age_s must lie between 0 and 3600, not -1.0"),
        (["-p", "use_sim_time:=5"], "'use_sim_time' to '5' of type 'INTEGER', expecting type 'BOOL'"),
        (["-p", "qos_overrides./image.subscription.reliability:=sometimes"], "sometimes"),
    ],
)
@pytest.mark.usefixtures("ros_environment")
def test_a_node_that_cannot_start_says_why_and_ends_with_status_1(capfd, arguments, sentence):
    small = ["-p", f"bundle:={TINY}", "-p", "coverage:=false"]
    assert caption_command.main(["--ros-args", *small, *arguments]) == 1
    log = capfd.readouterr().err
    assert sentence in log
    assert "Traceback" not in log


def test_of_a_hundred_requests_at_once_each_gets_an_answer(robot, diagnostics):
    robot.start_caption_node("-p", "autostart:=false", kind=SLOW)
    assert robot.change_state("configure")
    # rclpy's clients keep ten requests and answers by default, and lose the others on a busy machine.
    client = robot.node.create_client(
        DescribeImage, "/caption_node/describe_image",
        qos_profile=QoSProfile(depth=200, reliability=ReliabilityPolicy.RELIABLE),
    )  # fmt: skip
    robot.wait_for(client.service_is_ready, "service")
    robot.spin_for(1.0)
    shades = range(100, 200)
    requests = [DescribeImage.Request(image=Image(**image_fields(shade))) for shade in shades]
    calls = [client.call_async(request) for request in requests]
    robot.wait_for(lambda: all(call.done() for call in calls), "answer to each", 40)
    captions = [call.result().caption for call in calls]
    captioned = [caption for caption in captions if caption.status == Caption.STATUS_OK]
    busy = [caption for caption in captions if "16 requests are waiting already" in caption.status_message]
    assert len(captioned) + len(busy) == 100
    assert len(captioned) >= 16
    for shade, caption in zip(shades, captions, strict=True):
        assert caption in busy or caption.text == f"shade {shade}"
    diagnostics.wait_for({"requests answered": str(len(captioned)), "requests refused as busy": str(len(busy))})
