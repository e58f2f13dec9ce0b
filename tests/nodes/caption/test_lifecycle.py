"""Requests for transitions are carried out one at a time, and configuring can be cancelled."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn

from smart_caption_ros.nodes.caption.lifecycle import TransitionRequests
from tests.nodes.waiting import wait_for

SHUTDOWN = Transition.TRANSITION_INACTIVE_SHUTDOWN


class Machine(LifecycleNode):
    """A node whose transition to inactive goes on until it is cancelled."""

    def __init__(self, context):
        super().__init__("machine", context=context)
        self.shutdowns = 0
        self.begun, self.cancelled = threading.Event(), threading.Event()
        self.requests = TransitionRequests(self, self.cancelled.set)
        self._users = ThreadPoolExecutor(8)

    def on_configure(self, state):
        self.begun.set()
        return TransitionCallbackReturn.FAILURE if self.cancelled.wait(20) else TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state):
        self.shutdowns += 1
        return TransitionCallbackReturn.SUCCESS

    def ask(self, transition):
        """Request a transition on another thread; the result is whether it was successful."""
        request = ChangeState.Request(transition=Transition(id=transition))
        return self._users.submit(lambda: bool(self.requests.answer(request, ChangeState.Response()).success))


@pytest.fixture
def machine(node):
    made = Machine(node.context)
    yield made
    made.cancelled.set()
    made.destroy_node()


def test_configuring_that_begins_after_the_request_to_shut_down_is_cancelled_as_well(machine):
    with machine.requests.in_progress:
        shutting_down = machine.ask(SHUTDOWN)
        assert not machine.cancelled.wait(0.2), "nothing is being configured yet"
        assert machine.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert shutting_down.result(10)
    assert machine.shutdowns == 1


def test_one_request_waits_at_most(machine):
    with machine.requests.in_progress:
        asked = [machine.ask(SHUTDOWN) for _ in range(4)]
        wait_for(lambda: sum(request.done() for request in asked) == 3)
    assert sorted(request.result(10) for request in asked) == [False, False, False, True]
