"""Results of steps are read some steps later, and name the first step that went wrong."""

import math

import pytest
import torch

from training.engine.distributed import Processes
from training.engine.results import ResultReader, UnreadResult
from training.errors import TrainingError


@pytest.fixture
def reader():
    return ResultReader(Processes(torch.device("cpu")), max_loss=100.0)


def result(loss, norm=1.0, reward=None):
    return UnreadResult(torch.tensor(loss), reward, {"captioner": torch.tensor(norm)})


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (result(math.nan), "the loss is nan"),
        (result(-math.inf), "the loss is -inf"),
        (result(-100.5), "the loss is -100: it has exploded"),
        (result(1.0, norm=math.inf), "the norm of the captioner's gradient is inf"),
    ],
)
def test_the_first_bad_step_is_named(reader, bad, problem):
    for place, unread in enumerate((result(100.0), bad, result(math.nan))):
        reader.add(unread, f"frozen 1/7, step {place}")
    with pytest.raises(TrainingError, match=f"{problem}, at frozen 1/7, step 1; the last good checkpoint is kept"):
        reader.read()
