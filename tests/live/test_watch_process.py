"""`smart-caption watch` on a terminal of its own: what it shows, how it ends, and the terminal afterwards."""

import contextlib
import signal

import pytest

from tests.live.terminal_process import CLI, TerminalProcess

SCRIPTED = """
import sys
from smart_caption_ros.live import CaptionFeed
from smart_caption_ros.record import CaptionRecord, CaptionStatus
from smart_caption_ros.live.terminal import watch
from dataclasses import replace

class Feed(CaptionFeed):
    description, waiting_for = "a scripted feed", ()

feed = Feed()
record = CaptionRecord.without_caption(CaptionStatus.OK, "", camera="front", source="/front")
feed.add(replace(record, caption=replace(record.caption, text="a red cup \u4e2d")))
if sys.argv[1:] == ["error"]:
    feed.next = lambda timeout_s: 1 / 0
print("noise", file=sys.stderr)
status = watch(feed)
sys.exit(status)
"""


def test_a_folder_is_watched_and_the_window_resized(pictures, tiny_bundle):
    arguments = ("watch", "--source", str(pictures), "--bundle", str(tiny_bundle), "--interval", "0.2", "--loop")
    with TerminalProcess(CLI, *arguments) as terminal:
        terminal.wait_for(lambda: "kitchen w" in terminal.screen)
        lines = terminal.screen.splitlines()
        assert "folder" in lines[0]
        assert lines[2].startswith("kitchen ")

        def has_size(width, height):
            return [len(line) for line in terminal.screen.split("\n")] == [width] * height

        for size in ((50, 12), (20, 4), (1, 1)):
            terminal.resize(size)
            terminal.wait_for(lambda size=size: has_size(*size))
        terminal.type(b"\x03")
        assert terminal.wait() == 130
        assert terminal.settings_now == terminal.settings


def test_the_terminal_is_restored_however_the_view_ends():
    with contextlib.ExitStack() as stack:
        # All at once: starting them takes most of the time.
        started = [
            stack.enter_context(TerminalProcess(SCRIPTED, *arguments, PYTHONIOENCODING=encoding))
            for arguments, encoding in [([], "ascii"), ([], "utf-8"), ([], ""), (["error"], "")]
        ]
        *good, broken = started
        for terminal in good:
            terminal.wait_for(lambda terminal=terminal: "a red cup" in terminal.screen)
        ctrl_c, terminated, closed = good
        assert "a red cup ?" in ctrl_c.screen, "a terminal without Unicode"
        assert "a red cup \u4e2d" in terminated.screen
        ctrl_c.type(b"\x03")
        assert ctrl_c.wait() == 130
        terminated.process.terminate()
        assert terminated.wait() == 128 + signal.SIGTERM
        assert broken.wait() == 1
        assert "ZeroDivisionError" in broken.received.rpartition("\x1b[?1049l")[2], "the error is on the normal screen"
        for terminal in (ctrl_c, terminated, broken):
            assert terminal.settings_now == terminal.settings
            assert terminal.received.rpartition("\x1b[?25")[2].startswith("h"), "the cursor is shown"
            assert terminal.screen == ""
        closed.hang_up()
        assert closed.wait() == -signal.SIGHUP


@pytest.mark.needs_ros
def test_captions_of_a_publisher_are_shown_and_what_is_awaited_before(monkeypatch):
    import rclpy
    from rclpy.context import Context
    from rclpy.node import Node
    from smart_caption_ros.msg import Caption, CaptionWord

    from smart_caption_ros.nodes.demo.processes import free_domain_id

    domain_id = free_domain_id()
    variables = {"ROS_DOMAIN_ID": str(domain_id), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    context = Context()
    with TerminalProcess(CLI, "watch", **variables) as terminal:
        terminal.wait_for(lambda: "No caption yet" in terminal.screen)
        assert f"a publisher of a topic of type smart_caption_ros/msg/Caption in ROS domain {domain_id}" in " ".join(
            terminal.screen.split()
        )
        rclpy.init(context=context, domain_id=domain_id)
        node = Node("captions", context=context)
        try:
            publisher = node.create_publisher(Caption, "/robot/caption", 10)
            words = ["a", "\x1b[2Jcup"]
            message = Caption(
                format_version=1, text=" ".join(words), camera="front", words=[CaptionWord(text=word) for word in words]
            )

            def is_shown():
                publisher.publish(message)
                return "a \\x1b[2Jcup" in terminal.screen

            terminal.wait_for(is_shown)
            assert "\nfront " in terminal.screen
            terminal.type(b"\x03")
            assert terminal.wait() == 130
        finally:
            node.destroy_node()
            context.try_shutdown()
