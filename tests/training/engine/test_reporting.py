"""Reports of a run."""

import json
from contextlib import closing

from tests.training.event_files import scalars
from training.configs.schema import PhaseConfig
from training.engine.dev_evaluation import DevScores
from training.engine.progress import Plan, Progress
from training.engine.reporting import RunReport

PLAN = Plan([PhaseConfig(name="only", epochs=3, learning_rate=1.0, images_per_batch=20)], images=90)


def epochs_of(folder):
    return [json.loads(line)["epoch"] for line in (folder / "log.jsonl").read_text().splitlines()]


def report(folder, progress, *epochs):
    with closing(RunReport(folder, PLAN, progress)) as writer:
        for epoch in epochs:
            writer.epoch({"phase": "only", "epoch": epoch}, DevScores({}))


def test_a_line_that_a_kill_has_truncated_is_removed(tmp_path):
    report(tmp_path, Progress(), 1)
    with (tmp_path / "log.jsonl").open("a") as stream:
        stream.write('{"phase": "on')
    report(tmp_path, Progress(epoch=1, history=[{"phase": "only", "epoch": 1, "seconds": 1.0}]), 2)
    assert epochs_of(tmp_path) == [1, 2]


def test_scores_of_a_subset_have_a_curve_of_their_own(tmp_path):
    progress = Progress()
    with closing(RunReport(tmp_path, PLAN, progress)) as writer:
        for scores in (DevScores(None, {"cider": 0.5}, 2), DevScores({"cider": 0.25}, {"cider": 0.75}, 2)):
            progress.steps_done += 5
            writer.epoch({"phase": "only"}, scores)
    assert scalars(tmp_path, "dev_subset/cider") == {5: 0.5, 10: 0.75}
    assert scalars(tmp_path, "dev/cider") == {10: 0.25}
