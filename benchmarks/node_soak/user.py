"""A user's node: records captions and diagnostics, calls services, opens and closes further subscriptions."""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters
from rclpy.client import Client
from rclpy.context import Context
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from rclpy.subscription import Subscription
from smart_caption_ros.msg import Caption

from benchmarks.caption_listener import NodeInOwnContext
from benchmarks.node_soak.records import Answered, Counts, Record
from smart_caption_ros.nodes.demo.processes import NodeProcess

CAPTION_NODE = "/caption_node"
CAPTION_TOPIC = "/robot/caption"
TIMEOUT_S = 120.0
"""Maximum time of every call and wait, on a busy machine, seconds."""

MAY_BE_UNKNOWN = "calibrated_confidence"
"""The field of a caption that is NaN if its bundle has no calibration."""
_QUEUE = 1000


class NoAnswerError(Exception):
    """The node did not answer in time; one sentence."""


class User(NodeInOwnContext):
    """The node of a user; everything happens on the thread that calls its methods."""

    node_name = "soak"

    def __init__(self, context: Context, record: Record) -> None:
        """Subscribe to captions and diagnostics, which are added to ``record`` while a method runs."""
        super().__init__(context)
        self.process: NodeProcess | None = None
        """The process of the caption node: a wait ends as soon as it has ended."""
        self._record = record
        self._clients: dict[str, Client] = {}
        self.node.create_subscription(Caption, CAPTION_TOPIC, self._on_caption, _QUEUE)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, _QUEUE)

    def wait_for(self, condition: Callable[[], object], what: str, timeout_s: float = TIMEOUT_S) -> None:
        """Receive messages until the condition holds.

        Raises:
            NoAnswerError: it does not in time.
            ProcessLookupError: the node has ended.
        """
        end_s = time.monotonic() + timeout_s
        while not condition():
            if self.process is not None and (status := self.process.exit_status) is not None:
                raise ProcessLookupError(f"the node ended with the status {status}:\n{self.process.log_tail()}")
            if time.monotonic() > end_s:
                raise NoAnswerError(f"the node gave no {what} in {timeout_s:g} s")
            self._executor.spin_once(timeout_sec=0.05)

    def call(self, kind: Any, name: str, **fields: Any) -> Any:
        """Call a service of the caption node and return its response.

        Raises:
            NoAnswerError: no response came in time.
            ProcessLookupError: the node has ended.
        """
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = self.node.create_client(kind, f"{CAPTION_NODE}/{name}")
        self.wait_for(client.service_is_ready, f"service {name}")
        future = client.call_async(kind.Request(**fields))
        self.wait_for(future.done, f"response of {name}")
        return future.result()

    def set_parameter(self, name: str, value: Any) -> tuple[bool, str]:
        """Set a parameter of the caption node; return whether it was accepted, and the reason if not."""
        parameter = Parameter(name, value=value).to_parameter_msg()
        (result,) = self.call(SetParameters, "set_parameters", parameters=[parameter]).results
        return bool(result.successful), str(result.reason)

    def change_state(self, transition: str) -> bool:
        """Trigger a lifecycle transition by its name; return whether it succeeded."""
        message = Transition(id=getattr(Transition, f"TRANSITION_{transition.upper()}"))
        return bool(self.call(ChangeState, "change_state", transition=message).success)

    def subscribe(self, kind: type, topic: str) -> Subscription:
        """Open a further subscription, best effort, which discards its messages; see :meth:`unsubscribe`."""
        return self.node.create_subscription(kind, topic, lambda message: None, qos_profile_sensor_data, raw=True)

    def unsubscribe(self, subscription: Subscription) -> None:
        """Close a subscription of :meth:`subscribe`."""
        self.node.destroy_subscription(subscription)

    def _on_caption(self, caption: Caption) -> None:
        stamp = caption.header.stamp
        self._record.answers.append(
            Answered(
                caption.header.frame_id,
                (stamp.sec, stamp.nanosec),
                caption.status,
                caption.text,
                float(caption.score),
                tuple(faults_of(caption)),
            )
        )

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values = {value.key: value.value for value in status.values}
            if "images received" in values:
                self._record.counts.append(_counts(values))


def _counts(values: dict[str, str]) -> Counts:
    return Counts(
        received=int(values["images received"]),
        answered=int(values["images answered"]),
        answered_ok=int(values["answered ok"]),
        dropped=int(values["images dropped for newer ones"]),
        passed_over=int(values["images passed over"]),
        unchanged=int(values["images unchanged"]),
        lost=int(values["images lost on the way"]),
        state=values["state"],
    )


def faults_of(value: Any, name: str = "") -> Iterator[str]:
    """Yield the fields of a message that hold NaN, infinity or control characters, which no message of the node may.

    The header is left out, because it is copied from the image.
    """
    if isinstance(value, float):
        if not math.isfinite(value) and name != MAY_BE_UNKNOWN:
            yield f"{name} is {value}"
    elif isinstance(value, str):
        if not value.isprintable():
            yield f"{name} is {value!r}"
    elif hasattr(value, "get_fields_and_field_types"):
        for field in value.get_fields_and_field_types():
            if field != "header":
                yield from faults_of(getattr(value, field), f"{name}.{field}" if name else field)
    elif not isinstance(value, bytes | int):
        for place, item in enumerate(value):
            yield from faults_of(item, f"{name}[{place}]")
