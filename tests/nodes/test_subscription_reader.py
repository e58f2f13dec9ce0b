"""Messages taken past the executor: every one arrives, whatever the callback does, and none after closing."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from rclpy.event_handler import QoSSubscriptionMatchedInfo, SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.subscription import Subscription
from std_msgs.msg import String

from smart_caption_ros.nodes.subscription_reader import ExecutorBypassGroup, SubscriptionReader
from tests.nodes.waiting import wait_for

pytestmark = pytest.mark.needs_ros


def test_messages_arrive_without_an_executor_until_the_reader_is_closed(node: Node) -> None:
    heard: list[str] = []
    errors: list[Exception] = []

    def hear(message: String) -> None:
        heard.append(message.data)
        if message.data == "bad":
            raise ValueError("a bad one")

    subscription = node.create_subscription(String, "words", hear, 10, callback_group=ExecutorBypassGroup())
    publisher = node.create_publisher(String, "words", 10)
    reader = SubscriptionReader(node, subscription, errors.append)
    wait_for(lambda: publisher.get_subscription_count() == 1)
    for number, word in enumerate(("one", "bad", "two"), start=1):
        publisher.publish(String(data=word))
        wait_for(lambda: len(heard) == number)  # noqa: B023 -- asked at once
    assert heard == ["one", "bad", "two"]
    assert [str(error) for error in errors] == ["a bad one"]
    reader.close()
    publisher.publish(String(data="late"))
    time.sleep(0.2)
    assert heard == ["one", "bad", "two"]


def test_the_thread_survives_errors_of_ros_and_reports_them(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    working, failures = rclpy_implementation.WaitSet, iter(range(3))

    class Failing:
        def __init__(self, *sizes: Any) -> None:
            self._set = working(*sizes)

        def wait(self, timeout_ns: int) -> None:
            if next(failures, None) is not None:
                raise rclpy_implementation.RCLError("no memory")
            self._set.wait(timeout_ns)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._set, name)

    monkeypatch.setattr(rclpy_implementation, "WaitSet", Failing)
    heard: list[String] = []
    errors: list[Exception] = []
    subscription = node.create_subscription(String, "words", heard.append, 10, callback_group=ExecutorBypassGroup())
    publisher = node.create_publisher(String, "words", 10)
    reader = SubscriptionReader(node, subscription, errors.append)
    wait_for(lambda: len(errors) == 3 and publisher.get_subscription_count() == 1)
    publisher.publish(String(data="word"))
    wait_for(lambda: bool(heard))
    assert reader.is_alive
    reader.close()
    assert not reader.is_alive


def test_a_callback_that_does_not_return_is_seen(node: Node) -> None:
    stuck, go_on = threading.Event(), threading.Event()

    def block(message: String) -> None:
        stuck.set()
        go_on.wait()

    subscription = node.create_subscription(String, "words", block, 10, callback_group=ExecutorBypassGroup())
    publisher = node.create_publisher(String, "words", 10)
    reader = SubscriptionReader(node, subscription, lambda error: None)
    wait_for(lambda: publisher.get_subscription_count() == 1)
    publisher.publish(String(data="word"))
    assert stuck.wait(20)
    before_s = reader.silent_s
    time.sleep(0.2)
    assert reader.silent_s >= before_s + 0.2
    go_on.set()
    reader.close()


def test_events_of_the_subscription_arrive_without_an_executor(node: Node) -> None:
    publishers: list[int] = []
    errors: list[Exception] = []

    def count(event: QoSSubscriptionMatchedInfo) -> None:
        publishers.append(event.current_count)
        if len(publishers) == 1:
            raise ValueError("a bad one")

    subscription = node.create_subscription(
        String, "words", lambda _: None, 10, callback_group=ExecutorBypassGroup(),
        event_callbacks=SubscriptionEventCallbacks(matched=count),
    )  # fmt: skip
    reader = SubscriptionReader(node, subscription, errors.append)
    publisher = node.create_publisher(String, "words", 10)
    wait_for(lambda: publishers == [1])
    node.destroy_publisher(publisher)
    wait_for(lambda: publishers == [1, 0])
    reader.close()
    assert [str(error) for error in errors] == ["a bad one"]


def test_the_executor_leaves_messages_and_events_alone(node: Node) -> None:
    group = ExecutorBypassGroup()
    subscription = node.create_subscription(String, "words", lambda _: None, 10, callback_group=group)
    assert not group.can_execute(subscription)
    assert subscription.event_handlers
    assert not any(group.can_execute(event) for event in subscription.event_handlers)
    timer = node.create_timer(1.0, lambda: None, callback_group=group)
    assert group.can_execute(timer)


def test_messages_that_wait_to_be_taken_do_not_keep_the_executor_busy(node: Node) -> None:
    asked = 0

    class Counting(ExecutorBypassGroup):
        def can_execute(self, entity: object) -> bool:
            nonlocal asked
            asked += isinstance(entity, Subscription)  # once whenever the executor gathers what there is
            return super().can_execute(entity)

    subscription = node.create_subscription(String, "words", lambda _: None, 10, callback_group=Counting())
    publisher = node.create_publisher(String, "words", 10)
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    spinning = threading.Thread(target=executor.spin, daemon=True)
    spinning.start()
    wait_for(lambda: publisher.get_subscription_count() == 1)
    publisher.publish(String(data="word"))  # and nobody takes it
    time.sleep(0.5)
    executor.shutdown()
    spinning.join()
    assert subscription.event_handlers
    assert asked < 20  # hundreds of times where the executor waits for the events
