"""The time of a step is divided among its parts: every moment counts once."""

import threading
from collections.abc import Iterator

import pytest
import torch

from benchmarks.training_steps import parts
from benchmarks.training_steps.parts import OPTIMIZER, REST, WAITING, PartTimes, replace_function


class Clock:
    """Time passes only when the test says so."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(parts, "time", clock)
    return clock


@pytest.fixture
def times() -> PartTimes:
    return PartTimes(synchronise=lambda: None)


def test_time_in_an_inner_part_does_not_count_for_the_outer_one(clock: Clock, times: PartTimes) -> None:
    encode = times.timed("encoder", lambda: clock.work(2))

    def search() -> None:
        clock.work(1)
        encode()
        clock.work(4)

    times.begin()
    clock.work(8)
    times.timed("search", search)()
    assert times.end() == {"search": 5, "encoder": 2, REST: 8}


def test_a_part_ends_when_its_function_fails(clock: Clock, times: PartTimes) -> None:
    def fail() -> None:
        clock.work(1)
        raise KeyError("x")

    times.begin()
    with pytest.raises(KeyError, match="x"):
        times.timed("search", fail)()
    clock.work(2)
    assert times.end() == {"search": 1, REST: 2}


def test_parts_before_the_beginning_and_in_other_threads_are_not_counted(clock: Clock, times: PartTimes) -> None:
    search = times.timed("search", lambda: clock.work(1))
    search()
    times.begin()
    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    assert times.end() == {REST: 1}


def test_waiting_is_the_time_of_taking_a_batch_and_the_reader_is_closed(
    clock: Clock, times: PartTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    def load_ahead() -> Iterator[str]:
        try:
            for batch in "ab":
                clock.work(3)
                yield batch
        finally:
            closed.append(True)

    monkeypatch.setattr(parts, "load_ahead", load_ahead, raising=False)
    monkeypatch.setattr(parts, "READERS", ("benchmarks.training_steps.parts:load_ahead", "no.such:module"))
    monkeypatch.setattr(parts, "PLACES", {})
    times.install()
    times.begin()
    batches = parts.load_ahead()  # type: ignore[attr-defined]
    for _ in batches:
        clock.work(1)
    assert times.end() == {WAITING: 6, REST: 2}
    assert closed


def test_the_optimizer_is_a_part(clock: Clock, times: PartTimes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "READERS", ())
    monkeypatch.setattr(parts, "PLACES", {})

    class Slow(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            clock.work(7)

    times.install()
    optimizer = Slow([torch.zeros(1, requires_grad=True)], lr=0.1)
    times.begin()
    optimizer.step()
    assert times.end() == {OPTIMIZER: 7, REST: 0}


def test_a_function_that_a_commit_lacks_is_left_alone() -> None:
    for place in ("no_such_module:name", "benchmarks.training_steps.parts:NoClass.method", "torch:no_such_name"):
        assert not replace_function(place, lambda function: pytest.fail("called"))
