"""The caption node under nav2's lifecycle manager: the calls that its source makes, in its order and with its timeouts.

`nav2_lifecycle_manager/src/lifecycle_manager.cpp`: changeStateForNode() calls change_state, ignores the answer's
`success` (up to Jazzy), and compares the answer of get_state with the state that it wants.
"""

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState

pytestmark = pytest.mark.needs_ros

NODE = "/caption_node"
SERVICE_WAIT_S = 5.0
SERVICE_TIMEOUT_S = 5.0
"""Kilted's default of `service_timeout`; a fake engine loads at once, and the answers take milliseconds."""
BOND_TIMEOUT_S = 4.0

WANTED = {
    Transition.TRANSITION_CONFIGURE: State.PRIMARY_STATE_INACTIVE,
    Transition.TRANSITION_CLEANUP: State.PRIMARY_STATE_UNCONFIGURED,
    Transition.TRANSITION_ACTIVATE: State.PRIMARY_STATE_ACTIVE,
    Transition.TRANSITION_DEACTIVATE: State.PRIMARY_STATE_INACTIVE,
    Transition.TRANSITION_UNCONFIGURED_SHUTDOWN: State.PRIMARY_STATE_FINALIZED,
}


class Manager:
    """Does what nav2's manager does, for one node."""

    def __init__(self, robot):
        self._robot = robot
        self._change_state = robot.client(ChangeState, f"{NODE}/change_state")
        self._get_state = robot.client(GetState, f"{NODE}/get_state")

    def _call(self, client, request):
        self._robot.wait_for(client.service_is_ready, f"service {client.srv_name}", SERVICE_WAIT_S)
        future = client.call_async(request)
        self._robot.wait_for(future.done, f"answer of {client.srv_name}", SERVICE_TIMEOUT_S)
        return future.result()

    def change(self, *transitions):
        """changeStateForNode() for each transition; whether all of them led to the state that the manager wants."""
        for number in transitions:
            self._call(self._change_state, ChangeState.Request(transition=Transition(id=number)))
            if self._call(self._get_state, GetState.Request()).current_state.id != WANTED[number]:
                return False
        return True

    def startup(self):
        return self.change(Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)

    def pause(self):
        return self.change(Transition.TRANSITION_DEACTIVATE)

    def resume(self):
        return self.change(Transition.TRANSITION_ACTIVATE)

    def reset(self):
        return self.change(Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP)

    def shutdown(self):
        return self.reset() and self.change(Transition.TRANSITION_UNCONFIGURED_SHUTDOWN)


def test_the_manager_starts_pauses_resets_and_shuts_down_the_node(robot):
    process = robot.start_caption_node("-p", "autostart:=false")
    manager = Manager(robot)
    assert manager.startup()
    assert manager.pause()
    assert manager.resume()
    assert manager.reset()
    assert manager.startup(), "as after a bond that broke"
    assert manager.shutdown()
    robot.wait_for(lambda: process.exit_status is not None, "end of the process")
    assert process.exit_status == 0
    assert "Traceback" not in process.log.read_text()


@pytest.mark.long
def test_a_node_that_has_started_itself_makes_the_manager_give_up(robot):
    """Hence `autostart: false` in the documentation."""
    process = robot.start_caption_node()
    robot.wait_for(lambda: robot.lifecycle_state() == "active", "active node")
    assert not Manager(robot).startup()
    assert robot.lifecycle_state() == "active"
    assert process.exit_status is None


def test_a_manager_that_does_not_wait_for_loading_sees_the_state_and_may_ask_again(robot):
    """Since Kilted the manager gives up after `service_timeout`, while the node goes on."""
    robot.start("tests.system.loading_node", "-p", "autostart:=false")
    client = robot.node.create_client(ChangeState, f"{NODE}/change_state")
    robot.wait_for(client.service_is_ready, "service")
    client.call_async(ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE)))
    robot.wait_for(lambda: robot.lifecycle_state() == "configuring", "begin of loading")


class TestBond:
    @pytest.fixture
    def heartbeats(self, robot):
        messages = pytest.importorskip("bond.msg", reason="needs the package bond")
        return robot.listen(messages.Status, "/bond", 100)

    def test_an_active_node_sends_heartbeats_and_a_deactivated_one_says_so(self, robot, heartbeats):
        robot.start_caption_node("-p", "autostart:=false")
        manager = Manager(robot)
        assert manager.change(Transition.TRANSITION_CONFIGURE)
        robot.spin_for(0.5)
        assert not heartbeats
        assert manager.change(Transition.TRANSITION_ACTIVATE)
        robot.wait_for(lambda: len(heartbeats) >= 5, "heartbeats", BOND_TIMEOUT_S)
        assert {(heartbeat.id, heartbeat.active) for heartbeat in heartbeats} == {("caption_node", True)}
        assert len({heartbeat.instance_id for heartbeat in heartbeats}) == 1
        assert manager.pause()
        robot.wait_for(lambda: not heartbeats[-1].active, "end of the bond")
        number = len(heartbeats)
        robot.spin_for(0.5)
        assert len(heartbeats) == number
        assert manager.resume()
        robot.wait_for(lambda: heartbeats[-1].active, "heartbeats")
        assert len({heartbeat.instance_id for heartbeat in heartbeats}) == 2, "a new bond"
