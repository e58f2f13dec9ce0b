"""The bond with nav2's lifecycle manager, which needs the package bond."""

import pytest

messages = pytest.importorskip("bond.msg", reason="needs the package bond")

BOND_TIMEOUT_S = 4.0


def test_an_active_node_sends_heartbeats_and_a_deactivated_one_says_so(robot):
    heartbeats = robot.listen(messages.Status, "/bond", 100)
    robot.start_caption_node("-p", "autostart:=false")
    assert robot.change_state("configure")
    robot.spin_for(0.5)
    assert not heartbeats
    assert robot.change_state("activate")
    robot.wait_for(lambda: len(heartbeats) >= 5, "heartbeats", BOND_TIMEOUT_S)
    assert {(heartbeat.id, heartbeat.active) for heartbeat in heartbeats} == {("caption_node", True)}
    assert len({heartbeat.instance_id for heartbeat in heartbeats}) == 1
    assert robot.change_state("deactivate")
    robot.wait_for(lambda: not heartbeats[-1].active, "end of the bond")
    number = len(heartbeats)
    robot.spin_for(0.5)
    assert len(heartbeats) == number
    assert robot.change_state("activate")
    robot.wait_for(lambda: heartbeats[-1].active, "heartbeats")
    assert len({heartbeat.instance_id for heartbeat in heartbeats}) == 2, "a new bond"
