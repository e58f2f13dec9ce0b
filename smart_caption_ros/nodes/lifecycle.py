"""Decorators that keep errors in lifecycle transitions visible and survivable."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol, TypeVar

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn


class ReportsFailures(Protocol):
    """A node with a method that reports failures."""

    def fail(self, failure: str) -> None:
        """Report a failure to the log and the diagnostics."""


NodeType = TypeVar("NodeType", bound=ReportsFailures)
Transition = Callable[[NodeType, LifecycleState], TransitionCallbackReturn]
ChangeStateCallback = Callable[[ChangeState.Request, ChangeState.Response], ChangeState.Response]


def report_exceptions(transition: Transition[NodeType]) -> Transition[NodeType]:
    """Report the exceptions of a transition callback, which rclpy turns into ERROR without a message."""

    @functools.wraps(transition)
    def reporting(node: NodeType, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception as error:
            node.fail(f"{transition.__name__}: {error}")
            return TransitionCallbackReturn.ERROR

    return reporting


def refuse_invalid_transitions(change_state: ChangeStateCallback) -> ChangeStateCallback:
    """Answer a request for a transition that the current state does not have; rclpy would end the process."""

    def refusing(request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        try:
            return change_state(request, response)
        except RuntimeError:  # the class of rclpy's errors
            response.success = False
            return response

    return refusing
