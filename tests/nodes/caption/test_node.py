"""The caption node inside the test's own process: what can only be seen from within."""

import contextlib
import gc
import threading
import time
import weakref

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.exceptions import InvalidHandle
from rclpy.executors import MultiThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CompressedImage, Image
from smart_caption_ros.msg import Caption
from std_msgs.msg import String

from smart_caption_ros.captioning import BundleError
from smart_caption_ros.nodes import diagnostics_publisher
from smart_caption_ros.nodes.caption import overlay
from smart_caption_ros.nodes.caption.node import CaptionNode
from smart_caption_ros.nodes.caption.worker import Worker
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage, image_fields
from tests.nodes.waiting import wait_for


class Bench:
    """A caption node and a user's node, spun in a thread; what the user received is in `captions` and `diagnostics`."""

    def __init__(self, context, load, given):
        self.load = load
        self.loaded = []
        self.node = CaptionNode(
            load_captioner=self._load_captioner,
            load_coverage=lambda *chosen: FakeCoverage(),
            context=context,
            parameter_overrides=[Parameter(name, value=value) for name, value in given.items()],
        )
        self.user = Node("user", context=context)
        self.captions = []
        self.diagnostics = []
        self.user.create_subscription(DiagnosticArray, "/diagnostics", self.diagnostics.append, 10)
        self.images = self.user.create_publisher(Image, "image", 10)
        self.user.create_subscription(Caption, "robot/caption", self.captions.append, 10)
        self.executor = MultiThreadedExecutor(num_threads=4, context=context)
        self.executor.add_node(self.node)
        self.executor.add_node(self.user)
        self._ended = False
        self._spinning = threading.Thread(target=self._spin)
        self._spinning.start()

    def _load_captioner(self, *chosen):
        self.loaded.append(self.load(*chosen))
        return self.loaded[-1]

    def _spin(self):
        while not self._ended:
            with contextlib.suppress(InvalidHandle):  # a test destroys a subscription while it is waited for
                self.executor.spin_once(timeout_sec=0.1)

    def caption(self, shade):
        """Publishes frames of a shade until a caption of it comes back."""
        wait_for(self.images.get_subscription_count, "subscription to the images")
        self.captions.clear()

        def answered():
            stamp = self.user.get_clock().now().to_msg()
            image = Image(**image_fields(shade))
            image.header.stamp = stamp
            self.images.publish(image)
            time.sleep(0.05)
            return any(caption.text == f"shade {shade}" for caption in self.captions)

        wait_for(answered, f"caption of shade {shade}")
        return self.captions[-1]

    def status(self):
        """The next status that the node publishes from now on."""
        self.diagnostics.clear()
        wait_for(lambda: len(self.diagnostics) > 1, "diagnostics")
        return self.diagnostics[-1].status[0]

    def state(self):
        """The label of the node's state, as a user's node gets it."""
        client = self.user.create_client(GetState, "/caption_node/get_state")
        assert client.wait_for_service(10)
        future = client.call_async(GetState.Request())
        wait_for(future.done, "state")
        return future.result().current_state.label

    def close(self):
        self._ended = True
        self._spinning.join()
        self.executor.shutdown()
        self.node.close()


@pytest.fixture
def make_bench(node, monkeypatch):
    monkeypatch.setattr(diagnostics_publisher, "PERIOD_S", 0.1)
    made = []

    def make(load=FakeCaptioner, **given):
        values = {"detector": "/d.onnx", "objects_from": "topic", "threads": 3, **given}
        made.append(Bench(node.context, load, values))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def bench(make_bench):
    return make_bench(autostart=False)


def test_the_overlay_is_drawn_only_while_somebody_watches(bench, monkeypatch):
    drawn = []
    threads = set()

    def drawing(*arguments):
        drawn.append(arguments)
        threads.add(threading.current_thread().name)
        return outputs_draw(*arguments)

    outputs_draw = overlay.draw_overlay
    monkeypatch.setattr(overlay, "draw_overlay", drawing)
    bench.node.trigger_configure()
    bench.node.trigger_activate()
    bench.caption(100)
    assert not drawn

    overlays = []
    jpegs = []
    watching = [
        bench.user.create_subscription(kind, topic, received.append, qos_profile_sensor_data)
        for kind, topic, received in (
            (Image, "robot/caption/image", overlays),
            (CompressedImage, "robot/caption/image/compressed", jpegs),
        )
    ]

    def both_seen():
        bench.caption(101)
        return bool(overlays and jpegs)

    wait_for(both_seen, "overlay")
    assert overlays[-1].encoding == "bgr8"
    assert overlays[-1].height > 48, "the frame with a strip under it"
    assert bytes(jpegs[-1].data[:2]) == b"\xff\xd8"
    assert len(drawn) >= len(overlays)
    assert threads == {"overlay_0"}, "not the thread of the engine"

    monkeypatch.setattr(overlay, "MAX_SIDE_PX", 32)
    wait_for(lambda: both_seen() and drawn[-1][0].shape == (24, 32, 3), "overlay drawn at the size it is sent")
    assert drawn[-1][1].words[0].box_xyxy == (0, 0, 16, 12)
    wait_for(lambda: both_seen() and overlays[-1].width <= 32 and overlays[-1].height <= 32, "small overlay")

    for subscription in watching:
        bench.user.destroy_subscription(subscription)

    def nobody_is_drawn_for():
        before = len(drawn)
        bench.caption(102)
        return len(drawn) == before

    wait_for(nobody_is_drawn_for, "end of drawing")


def test_on_change_the_text_of_a_scene_is_published_once_and_again_after_activation(bench):
    bench.node.set_parameters([Parameter("text_on_change", value=True)])
    bench.node.trigger_configure()
    texts = []
    bench.user.create_subscription(String, "robot/caption/text", texts.append, 10)
    wait_for(lambda: bench.user.count_publishers("robot/caption/text"), "publisher")
    for _ in range(2):
        bench.node.trigger_activate()
        for shade in (20, 20, 20, 30, 30):
            bench.caption(shade)
        wait_for(lambda: texts and texts[-1].data == "shade 30", "text")
        bench.node.trigger_deactivate()
        assert [text.data for text in texts] == ["shade 20", "shade 30"]
        texts.clear()


def test_cleanup_lets_go_of_the_engine_and_configure_loads_it_again(bench):
    node = bench.node
    for _ in range(2):
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        bench.caption(99)
        assert node.trigger_deactivate() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_cleanup() == TransitionCallbackReturn.SUCCESS
        captioner = weakref.ref(bench.loaded.pop())
        gc.collect()
        assert captioner() is None


def test_a_failed_configure_leaves_the_node_as_it_was_and_can_be_repeated(bench):
    def refuse(*arguments):
        raise BundleError("there is no bundle there" + "!" * 1_000_000)

    bench.load = refuse
    assert bench.node.trigger_configure() == TransitionCallbackReturn.FAILURE
    wait_for(lambda: "there is no bundle" in bench.status().message, "failure")
    assert len(bench.status().message) <= 1000
    bench.load = FakeCaptioner
    assert bench.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert bench.node.trigger_activate() == TransitionCallbackReturn.SUCCESS
    assert bench.caption(98).status == Caption.STATUS_OK


def request_transition(bench, transition):
    client = bench.user.create_client(ChangeState, "/caption_node/change_state")
    assert client.wait_for_service(10)
    future = client.call_async(ChangeState.Request(transition=Transition(id=transition)))
    wait_for(future.done, f"answer to the transition {transition}")
    return future.result()


@pytest.fixture
def cancelled(monkeypatch):
    """Set as soon as a node cancels its loading."""
    event, cancel_loading = threading.Event(), Worker.cancel_loading

    def cancel(worker):
        cancel_loading(worker)
        event.set()

    monkeypatch.setattr(Worker, "cancel_loading", cancel)
    return event


@pytest.mark.parametrize("autostart", [False, True])
def test_cleanup_cancels_the_loading_and_the_node_can_be_configured_again(make_bench, autostart, cancelled):
    loading = threading.Event()

    def load(*chosen):
        if not loading.is_set():
            loading.set()
            assert cancelled.wait(30)
            raise RuntimeError("the build was cancelled")
        return FakeCaptioner(*chosen)

    bench = make_bench(load, autostart=autostart)
    configuring = threading.Thread(target=request_transition, args=[bench, Transition.TRANSITION_CONFIGURE])
    if not autostart:
        configuring.start()
    assert loading.wait(30)
    refused = request_transition(bench, Transition.TRANSITION_ACTIVATE)
    assert not refused.success, "a state between two states has no such transition"
    cleaned_up = request_transition(bench, Transition.TRANSITION_CLEANUP)
    assert cleaned_up.success
    if not autostart:
        configuring.join(30)
    assert bench.state() == "unconfigured"
    assert bench.node.exit_status is None, "the process goes on"
    assert bench.status().level == DiagnosticStatus.OK, "who cancels it knows why it failed"
    configured = request_transition(bench, Transition.TRANSITION_CONFIGURE)
    assert configured.success
    bench.node.interrupt()


def test_another_node_of_the_same_name_is_noticed(bench):
    assert bench.status().message == "unconfigured"
    namesake = Node("caption_node", context=bench.user.context)
    wait_for(lambda: bench.status().message.startswith("2 nodes have the name /caption_node"), "warning")
    namesake.destroy_node()
    wait_for(lambda: bench.status().message == "unconfigured", "end of the warning")
