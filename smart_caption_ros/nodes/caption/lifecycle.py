"""Carry out requests for lifecycle transitions, one at a time; a request can cancel configuring."""

import threading
from collections.abc import Callable

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.lifecycle import LifecycleNode
from rclpy.service import Service

ChangeStateCallback = Callable[[ChangeState.Request, ChangeState.Response], ChangeState.Response]

_CLEANUP, _SHUTDOWN = "cleanup", "shutdown"
_UNCONFIGURED, _CONFIGURING = "unconfigured", "configuring"
_CANCEL_PERIOD_S = 0.05


class TransitionRequests:
    """Answers requests for transitions, one of which is carried out at a time.

    While the node is being configured, a request to clean up or to shut down cancels this, waits for its end, and is
    then carried out. All other requests during a transition are refused, as the node has no such transition then.
    """

    def __init__(self, node: LifecycleNode, cancel_configuring: Callable[[], None]) -> None:
        """``cancel_configuring``: makes a transition that configures the node fail soon; has no effect on others."""
        self.in_progress = threading.Lock()
        """Held during every transition, including those that the node starts by itself."""
        self._cancelling = threading.Lock()
        self._cancel_configuring = cancel_configuring
        self._get_state: Callable[..., GetState.Response] = _service(node, GetState).callback
        service = _service(node, ChangeState)
        self._change_state: ChangeStateCallback = service.callback
        service.callback = self.answer
        # A separate group in place of the node's default group: a transition may load for minutes, and meanwhile
        # lifecycle and parameter services are answered, and a second request may cancel it.
        service.callback_group = ReentrantCallbackGroup()
        service.callback_group.add_entity(service)

    @property
    def state(self) -> str:
        label: str = self._get_state(GetState.Request(), GetState.Response()).current_state.label
        return label

    def answer(self, request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        """Answer a request: the callback of the service, which may run on several threads at a time."""
        if self.in_progress.acquire(blocking=False):
            try:
                return self._carry_out(request, response)
            finally:
                self.in_progress.release()
        wanted = _label(request)
        response.success = False
        # At most one request waits, so that threads are left for other callbacks.
        if wanted in (_CLEANUP, _SHUTDOWN) and self._cancelling.acquire(blocking=False):
            try:
                return self._carry_out_after_cancelling(wanted, request, response)
            finally:
                self._cancelling.release()
        return response

    def _carry_out_after_cancelling(
        self, wanted: str, request: ChangeState.Request, response: ChangeState.Response
    ) -> ChangeState.Response:
        cancelled = False
        # Repeated, because the transition in progress may not have begun to load yet.
        while not self.in_progress.acquire(timeout=_CANCEL_PERIOD_S):
            if self.state == _CONFIGURING:
                self._cancel_configuring()
                cancelled = True
        try:
            if cancelled and wanted == _CLEANUP and self.state == _UNCONFIGURED:
                response.success = True
                return response
            request.transition.label = wanted  # the id of a shutdown depends on the state
            return self._carry_out(request, response)
        finally:
            self.in_progress.release()

    def _carry_out(self, request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        try:
            return self._change_state(request, response)
        except RuntimeError:  # the class of rclpy's errors: the state has no such transition
            response.success = False
            return response


def _label(request: ChangeState.Request) -> str:
    labels = {
        Transition.TRANSITION_CLEANUP: _CLEANUP,
        Transition.TRANSITION_UNCONFIGURED_SHUTDOWN: _SHUTDOWN,
        Transition.TRANSITION_INACTIVE_SHUTDOWN: _SHUTDOWN,
        Transition.TRANSITION_ACTIVE_SHUTDOWN: _SHUTDOWN,
    }
    return request.transition.label or labels.get(request.transition.id, "")


def _service(node: LifecycleNode, kind: type) -> Service:
    return next(service for service in node.services if service.srv_type is kind)
