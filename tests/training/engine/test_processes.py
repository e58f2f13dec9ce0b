"""A run that is stopped and resumed with another number of processes is the run of one process."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.engine.observed_run import Drifting, StoppedError, run
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


def start(folder: Path, config: Path, data: Path, number: int, processes: int, steps: int | None) -> None:
    """Start or resume a run, and check that it is killed after the given steps, or ends."""
    if processes == 1:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("START", str(number))
            if steps is None:
                run(config, data, folder)
            else:
                with pytest.raises(StoppedError):
                    run(config, data, folder, steps)
        return
    arguments = [config, data, folder, *([] if steps is None else [steps])]
    done = run_in_processes(processes, "tests.training.engine.observed_run", *arguments, START=str(number))
    assert (done.returncode == 0) == (steps is None), done.stderr
    assert "Error" not in done.stdout


def observed(folder: Path, number: int, processes: int) -> list[list[dict[str, Any]]]:
    """What each process of a start has written."""
    files = [folder / "observed" / f"{number}-{rank}.jsonl" for rank in range(processes)]
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def images_of_steps(starts: Sequence[list[list[dict[str, Any]]]]) -> list[tuple[list[Any], list[int]]]:
    """Each step, and its images over all processes; a step that was repeated after a kill is there twice."""
    steps = []
    for ranks in starts:
        found: dict[str, set[int]] = {}
        for line in (line for rank in ranks for line in rank if "images" in line):
            found.setdefault(json.dumps(line["place"]), set()).update(line["images"])
        steps += [(json.loads(place), sorted(images)) for place, images in found.items()]
    return steps


@pytest.fixture(scope="module")
def folders(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A run in one process, and one that was killed three times and resumed with other numbers of processes."""
    whole, cut = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("cut")
    config = write_config(whole / "config.yaml", family="drifting", model=MODEL, phases=[FIRST, SECOND])
    run(config, data, whole)
    for number, (processes, steps) in enumerate(STARTS):
        start(cut, config, data, number, processes, steps)
        if steps is not None:
            _, state = load_checkpoint(cut / "run" / "checkpoint.safetensors")
            assert state["step"] in (1, 2), "was not killed in the middle of an epoch"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, "drifting", Drifting)
        yield whole, cut


def test_a_run_resumed_with_another_number_of_processes_has_the_same_weights(folders: tuple[Path, Path]) -> None:
    for file in ("checkpoint.safetensors", "best.safetensors", "first-1.safetensors"):
        (expected, expected_state), (found, state) = (load_checkpoint(folder / "run" / file) for folder in folders)
        assert found.keys() == expected.keys()
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-6)
        assert found["captioner.bank"].abs().min() > 0.1
    assert state.keys() == expected_state.keys()


def test_it_has_the_same_images_in_the_same_steps(folders: tuple[Path, Path]) -> None:
    whole = images_of_steps([observed(folders[0], 0, 1)])
    assert len(whole) == 9
    assert sorted(image for _, images in whole[:3] for image in images) == list(range(12))
    resumed = images_of_steps([observed(folders[1], number, count) for number, (count, _) in enumerate(STARTS)])
    assert [step for index, step in enumerate(resumed) if step not in resumed[:index]] == whole
    assert len(resumed) == len(whole) + 3


def test_it_has_the_same_scores_and_the_same_best_epoch(folders: tuple[Path, Path]) -> None:
    logs = []
    for folder in folders:
        lines = (folder / "run" / "log.jsonl").read_text().splitlines()
        logs.append([{**json.loads(line), "seconds": 0, "time": 0} for line in lines])
        assert TrainedCaptioner.load(folder / "run" / "best.safetensors").record["dev"]["epoch"] > 0
    assert [entry["epoch"] for entry in logs[0]] == [1, 2, 1]
    for found, expected in zip(logs[1], logs[0], strict=True):
        assert found == pytest.approx(expected, abs=1e-4)


def test_every_process_has_the_same_averages_buffers_scores_and_selection_after_an_epoch(
    folders: tuple[Path, Path],
) -> None:
    for number, count in ((1, 2), (3, 3)):
        epochs = [[line for line in rank if "weights" in line] for rank in observed(folders[1], number, count)]
        assert len(epochs[0]) == 1
        assert all(rank == epochs[0] for rank in epochs)
