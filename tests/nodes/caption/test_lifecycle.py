"""Requests for transitions are carried out one at a time, and configuring can be cancelled."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState

from smart_caption_ros.nodes.lifecycle import TransitionRequests

pytestmark = pytest.mark.needs_ros

CONFIGURE, CLEANUP, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_CLEANUP, 3
SHUTDOWN = Transition.TRANSITION_INACTIVE_SHUTDOWN


class Machine:
    """A state machine whose transition to inactive goes on until it is cancelled or may end."""

    def __init__(self) -> None:
        self.state = "unconfigured"
        self.carried_out: list[tuple[int, str]] = []
        self.begun, self.cancelled, self.may_end = threading.Event(), threading.Event(), threading.Event()
        self.requests = TransitionRequests(self.change_state, lambda: self.state, self.cancelled.set)
        self._users = ThreadPoolExecutor(8)

    def change_state(self, request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        """What rclpy does with a request."""
        self.carried_out.append((request.transition.id, request.transition.label))
        if request.transition.id == CONFIGURE:
            self.begun.set()
            self.state = "configuring"
            while not (self.cancelled.wait(0.01) or self.may_end.is_set()):
                pass
            self.state = "unconfigured" if self.cancelled.is_set() else "inactive"
            response.success = self.state == "inactive"
        elif request.transition.id == CLEANUP and self.state == "unconfigured":
            raise RuntimeError("no such transition")
        else:
            response.success = True
        return response

    def ask(self, transition: int) -> Future[Any]:
        """Request a transition on another thread."""
        request = ChangeState.Request(transition=Transition(id=transition))
        return self._users.submit(lambda: self.requests.answer(request, ChangeState.Response()).success)


def test_a_cleanup_or_shutdown_cancels_configuring_and_is_carried_out_after_it() -> None:
    for transition, carried_out in ((CLEANUP, []), (SHUTDOWN, [(SHUTDOWN, "shutdown")])):
        machine = Machine()
        configuring = machine.ask(CONFIGURE)
        assert machine.begun.wait(10)
        assert machine.ask(transition).result(10)
        assert not configuring.result(10)
        assert machine.carried_out[1:] == carried_out, "there is nothing to clean up"


def test_other_requests_during_a_transition_are_refused_at_once() -> None:
    machine = Machine()
    configuring = machine.ask(CONFIGURE)
    assert machine.begun.wait(10)
    assert not machine.ask(ACTIVATE).result(10)
    assert not machine.ask(CONFIGURE).result(10)
    machine.may_end.set()
    assert configuring.result(10)
    assert [transition for transition, _ in machine.carried_out] == [CONFIGURE]
    assert machine.ask(ACTIVATE).result(10)


def test_configuring_that_begins_after_the_request_to_shut_down_is_cancelled_as_well() -> None:
    machine = Machine()
    with machine.requests.in_progress:
        shutting_down = machine.ask(SHUTDOWN)
        assert not machine.cancelled.wait(0.2), "nothing is being configured yet"
        machine.state = "configuring"
        assert machine.cancelled.wait(10)
        machine.state = "unconfigured"
    assert shutting_down.result(10)


def test_one_request_waits_at_most() -> None:
    machine = Machine()
    with machine.requests.in_progress:
        asked = [machine.ask(SHUTDOWN) for _ in range(4)]
        refused = threading.Semaphore(0)
        for each in asked:
            each.add_done_callback(lambda _: refused.release())
        for _ in range(3):
            assert refused.acquire(timeout=10)
        assert sum(each.done() for each in asked) == 3
    assert sorted(each.result(10) for each in asked) == [False, False, False, True]


def test_a_transition_that_the_state_does_not_have_is_refused() -> None:
    assert not Machine().ask(CLEANUP).result(10)
