"""Signals are noted, not thrown."""

import os
import signal
import subprocess
import sys

import pytest

from smart_caption_ros.signals import EndSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_however_often_it_comes(number):
    with EndSignals() as signals:
        assert not signals.arrived
        signals.raise_if_arrived()
        for _ in range(3):
            os.kill(os.getpid(), number)
        assert signals.arrived
        with pytest.raises(KeyboardInterrupt):
            signals.raise_if_arrived()


def test_afterwards_the_former_handlers_are_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with EndSignals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


SLOW_TO_END = """
import atexit, signal, sys, time
from smart_caption_ros.signals import EndSignals, exit_on_signal

def end_slowly():
    print("ending", flush=True)
    time.sleep(1)

atexit.register(end_slowly)
with exit_on_signal(), EndSignals() as signals:
    print("running", flush=True)
    while not signals.arrived:
        time.sleep(0.01)
sys.exit(3)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_while_the_process_ends_does_not_change_its_exit_status(number):
    """The terminal and `ros2 launch` both send SIGINT."""
    process = subprocess.Popen([sys.executable, "-c", SLOW_TO_END], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "running\n"
    process.send_signal(number)
    assert process.stdout.readline() == "ending\n"
    process.send_signal(number)
    assert process.wait(30) == 3
