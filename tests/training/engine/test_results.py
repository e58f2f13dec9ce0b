"""Results of steps are read some steps later, and name the first step that went wrong."""

import math

import pytest
import torch

from training.engine.distributed import Processes
from training.engine.results import ResultReader, StepResult, UnreadResult
from training.errors import TrainingError


@pytest.fixture
def reader() -> ResultReader:
    return ResultReader(Processes(torch.device("cpu")), max_loss=100.0)


def result(loss: float, norm: float = 1.0, reward: float | None = None) -> UnreadResult:
    return UnreadResult(torch.tensor(loss), reward, {"captioner": torch.tensor(norm)})


def test_every_result_is_returned_once_when_the_next_one_is_good(reader: ResultReader) -> None:
    reader.add(result(3.0), "step 0")
    assert reader.read() == []
    assert reader.read() == []
    reader.add(result(2.0, norm=0.5, reward=0.25), "step 1")
    reader.add(result(1.0), "step 2")
    assert reader.read() == [StepResult(3.0, None, {"captioner": 1.0}), StepResult(2.0, 0.25, {"captioner": 0.5})]
    reader.add(UnreadResult(torch.tensor(0.5), None, {}), "step 3")
    assert [result.loss for result in reader.read()] == [1.0]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (result(math.nan), "the loss is nan"),
        (result(-math.inf), "the loss is -inf"),
        (result(-100.5), "the loss is -100: it has exploded"),
        (result(1.0, norm=math.inf), "the norm of the captioner's gradient is inf"),
    ],
)
def test_the_first_bad_step_is_named(reader: ResultReader, bad: UnreadResult, problem: str) -> None:
    for place, unread in enumerate((result(100.0), bad, result(math.nan))):
        reader.add(unread, f"frozen 1/7, step {place}")
    with pytest.raises(TrainingError, match=f"{problem}, at frozen 1/7, step 1; the last good checkpoint is kept"):
        reader.read()
