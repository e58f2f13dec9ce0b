"""A run that is stopped and resumed with another number of processes is the run of one process."""

import json

import pytest
import torch

from tests.training.engine.killed_run import Drifting, StoppedError, run
from tests.training.processes import run_in_processes
from tests.training.small_flickr8k import write_config
from training.checkpoint import load_checkpoint
from training.engine.trained_captioner import TrainedCaptioner
from training.models import FAMILIES

pytestmark = pytest.mark.long

# Three steps an epoch, of 5, 5 and 2 images: the last one leaves one of three processes without images. A large eps
# keeps Adam from turning rounding errors into steps of the learning rate.
FIRST = {
    "name": "first", "epochs": 2, "learning_rate": 2e-3, "schedule": "constant", "images_per_batch": 5, "average": 0.75,
    "patience": 2, "optimizer": {"eps": 1e-3},
}  # fmt: skip
SECOND = {**FIRST, "name": "second", "epochs": 1, "from_best": True}
MODEL = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.0}
STARTS = [(1, 2), (2, 4), (1, 4), (3, None)]
"""Of the resumed run: number of processes, and of steps until it is killed."""


def start(folder, config, data, processes, steps):
    """Start or resume a run, and check that it is killed after the given steps, or ends."""
    if processes > 1:
        arguments = [config, data, folder, *([] if steps is None else [steps])]
        done = run_in_processes(processes, "tests.training.engine.killed_run", *arguments)
        assert (done.returncode == 0) == (steps is None), done.stderr
        assert "Error" not in done.stdout
    else:
        with pytest.raises(StoppedError):
            run(config, data, folder, steps)


@pytest.fixture(scope="module")
def folders(data, tmp_path_factory):
    """A run in one process, and one that was killed three times and resumed with other numbers of processes."""
    whole, cut = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("cut")
    config = write_config(whole / "config.yaml", family="drifting", model=MODEL, phases=[FIRST, SECOND])
    run(config, data, whole)
    for processes, steps in STARTS:
        start(cut, config, data, processes, steps)
        if steps is not None:
            _, state = load_checkpoint(cut / "run" / "checkpoint.safetensors")
            assert state["step"] in (1, 2), "was not killed in the middle of an epoch"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, "drifting", Drifting)
        yield whole, cut


def test_a_run_resumed_with_another_number_of_processes_has_the_same_weights(folders):
    for file in ("checkpoint.safetensors", "best.safetensors", "first-1.safetensors"):
        (expected, expected_state), (found, state) = (load_checkpoint(folder / "run" / file) for folder in folders)
        assert found.keys() == expected.keys()
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-6)
        assert found["captioner.bank"].abs().min() > 0.1
    assert state.keys() == expected_state.keys()


def test_it_has_the_same_scores_and_the_same_best_epoch(folders):
    logs = []
    for folder in folders:
        lines = (folder / "run" / "log.jsonl").read_text().splitlines()
        logs.append([{**json.loads(line), "seconds": 0, "time": 0} for line in lines])
        assert TrainedCaptioner.load(folder / "run" / "best.safetensors").record["dev"]["epoch"] > 0
    assert [entry["epoch"] for entry in logs[0]] == [1, 2, 1]
    for found, expected in zip(logs[1], logs[0], strict=True):
        assert found == pytest.approx(expected, abs=1e-4)
