"""Disturbances of a running caption node, as a robot's operators cause them, one at a time and in random order."""

import random
from collections.abc import Callable
from typing import Any

from rclpy.subscription import Subscription
from sensor_msgs.msg import CompressedImage, Image
from smart_caption_ros.msg import Caption
from smart_caption_ros.srv import DescribeImage, DescribeLatest
from std_msgs.msg import String
from std_srvs.srv import SetBool

from benchmarks.node_soak.camera import FAULTS, Detector
from benchmarks.node_soak.records import Record
from benchmarks.node_soak.user import CAPTION_TOPIC, User

_MAX_PAUSE_S = 1.0
_MAX_LISTENERS = 4

# At rest, each parameter has its first value.
_VALUES: dict[str, tuple[Any, ...]] = {
    "max_age_s": (1.0, 0.0, 0.5),
    "min_calibrated_confidence": (0.0, 0.7, 0.9),
    "max_rate_hz": (0.0, 5.0),
    "text_on_change": (False, True),
    "detection_slop_s": (0.1, 0.0),
    "detection_wait_s": (0.0, 0.05),
}
_REFUSED: dict[str, Any] = {
    "max_age_s": -1.0,
    "threads": 2,  # while the node is configured
    "min_calibrated_confidence": 1.5,
    "text_on_change": 7,
    "no_such_parameter": 1,
}
_LISTENED = (
    (Image, f"{CAPTION_TOPIC}/image"),
    (CompressedImage, f"{CAPTION_TOPIC}/image/compressed"),
    (String, f"{CAPTION_TOPIC}/text"),
    (Caption, CAPTION_TOPIC),
)


class Disturbances:
    """Chooses disturbances, performs them, and records wrong reactions of the node."""

    def __init__(self, user: User, detector: Detector, record: Record, seed: int) -> None:
        self._user, self._record, self._random = user, record, random.Random(seed)
        self._detector = detector
        self._listeners: list[Subscription] = []
        self._left: list[Callable[[], None]] = []
        self._changed: set[str] = set()
        self._kinds: dict[Callable[[], None], int] = {
            self._change_parameter: 6,
            self._listen: 3,
            self._stop_listening: 3,
            self._try_refused_parameter: 2,
            self._deactivate_and_activate: 2,
            self._switch_off_and_on: 2,
            self._describe_latest: 1,
            self._describe_bad_image: 1,
            self._change_detector: 4,
        }

    def next(self) -> None:
        """Perform one disturbance, which takes up to about two seconds.

        Raises:
            NoAnswerError: the node did not answer a call in time.
        """
        if not self._left:  # each kind as often as its weight, in a new order each time
            self._left = [kind for kind, weight in self._kinds.items() for _ in range(weight)]
            self._random.shuffle(self._left)
        kind = self._left.pop()
        self._record.disturbances[kind.__name__.strip("_").replace("_", " ")] += 1
        kind()

    def rest(self) -> None:
        """Stop listening and reset every parameter to its first value, so that all rests find the node in one state.

        Raises:
            NoAnswerError: the node did not answer a call in time.
        """
        while self._listeners:
            self._stop_listening()
        for name in sorted(self._changed):
            self._set(name, _VALUES[name][0])
        self._changed.clear()

    def _change_parameter(self) -> None:
        name = self._random.choice(list(_VALUES))
        self._set(name, self._random.choice(_VALUES[name]))

    def _set(self, name: str, value: Any) -> None:
        self._changed.add(name)
        accepted, reason = self._user.set_parameter(name, value)
        if not accepted:
            self._problem(f"the node refused {value!r} for the parameter {name}: {reason}")

    def _try_refused_parameter(self) -> None:
        name = self._random.choice(list(_REFUSED))
        if self._user.set_parameter(name, _REFUSED[name])[0]:
            self._problem(f"the node accepted {_REFUSED[name]!r} for the parameter {name}")

    def _deactivate_and_activate(self) -> None:
        for transition in ("deactivate", "activate"):
            if not self._user.change_state(transition):
                self._problem(f"the transition {transition} failed")
            self._pause()

    def _switch_off_and_on(self) -> None:
        for enabled in (False, True):
            if not self._user.call(SetBool, "enable", data=enabled).success:
                self._problem(f"the service enable refused {enabled}")
            self._pause()

    def _listen(self) -> None:
        if len(self._listeners) < _MAX_LISTENERS:
            self._listeners.append(self._user.subscribe(*self._random.choice(_LISTENED)))

    def _stop_listening(self) -> None:
        if self._listeners:
            self._user.unsubscribe(self._listeners.pop(self._random.randrange(len(self._listeners))))

    def _describe_latest(self) -> None:
        self._user.call(DescribeLatest, "describe_latest")

    def _describe_bad_image(self) -> None:
        image = Image(width=4, height=4, encoding="bgr8", step=1)
        if self._user.call(DescribeImage, "describe_image", image=image).caption.status != Caption.STATUS_ERROR:
            self._problem("the service describe_image captioned an image without data")

    def _change_detector(self) -> None:
        self._detector.fault = self._random.choice(FAULTS)
        self._record.disturbances[f"detector: {self._detector.fault}"] += 1

    def _pause(self) -> None:
        self._user.spin(self._random.uniform(0.1, _MAX_PAUSE_S))

    def _problem(self, problem: str) -> None:
        self._record.problems.append(problem)
