"""Reports of a run that is stopped and resumed."""

import json
from pathlib import Path

from training.configs.schema import PhaseConfig
from training.engine.progress import Plan, Progress
from training.engine.reporting import RunReport

PLAN = Plan([PhaseConfig(name="only", epochs=3, learning_rate=1.0, images_per_batch=20)], images=[[90] * 3])


def epochs_of(folder: Path) -> list[int]:
    return [json.loads(line)["epoch"] for line in (folder / "log.jsonl").read_text().splitlines()]


def report(folder: Path, progress: Progress, *epochs: int) -> None:
    with RunReport(folder, PLAN, progress) as writer:
        for epoch in epochs:
            writer.epoch({"phase": "only", "epoch": epoch}, {})


def test_a_resumed_run_logs_an_epoch_once_that_was_logged_before_its_checkpoint(tmp_path: Path) -> None:
    report(tmp_path, Progress(), 1, 2)
    report(tmp_path, Progress(epoch=1, history=[{"phase": "only", "epoch": 1}]), 2, 3)
    assert epochs_of(tmp_path) == [1, 2, 3]


def test_a_line_that_a_kill_has_truncated_is_removed(tmp_path: Path) -> None:
    report(tmp_path, Progress(), 1)
    with (tmp_path / "log.jsonl").open("a") as stream:
        stream.write('{"phase": "on')
    report(tmp_path, Progress(epoch=1, history=[{"phase": "only", "epoch": 1}]), 2)
    assert epochs_of(tmp_path) == [1, 2]
