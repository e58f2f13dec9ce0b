"""Signals are noted, not thrown."""

import os
import signal

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
