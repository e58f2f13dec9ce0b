"""Steps of a run and its best epoch."""

import json
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from training.configs.schema import PhaseConfig
from training.engine.dev_evaluation import DevScores
from training.engine.progress import Plan, Progress

PLAN = Plan(
    [
        PhaseConfig(name="frozen", epochs=3, learning_rate=1.0, images_per_batch=20),
        PhaseConfig(name="rewarded", epochs=2, learning_rate=1.0, images_per_batch=10),
    ],
    images=90,
)


def test_the_steps_of_a_run_are_those_of_its_phases():
    assert PLAN.steps == [5, 9]
    assert PLAN.total == 3 * 5 + 2 * 9
    assert PLAN.done(Progress()) == 0
    assert PLAN.done(Progress(epoch=1, step=2)) == 7
    assert PLAN.done(Progress(phase=1, step=4)) == 19
    assert PLAN.done(Progress(phase=2)) == PLAN.total


def test_a_phase_that_stops_before_its_schedule_ends_has_fewer_steps():
    phase = PhaseConfig(name="p", epochs=4, stop_after=2, learning_rate=1.0, images_per_batch=20)
    plan = Plan([phase, phase], images=90)
    assert plan.total == 2 * 2 * 5
    assert plan.done(Progress(phase=1, epoch=1)) == 15
    assert plan.steps_of_phase(Progress(phase=1, epoch=1, step=3)) == (8, 20)


EPOCHS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), min_size=1, max_size=12)
"""For each epoch the scores of the subset and of the whole split in tenths, and whether the latter is known."""


@given(EPOCHS, st.integers(0, 12))
def test_scores_of_a_subset_are_compared_only_with_each_other(epochs, stopped_after):
    progress, best, history = Progress(), None, []
    for index, (subset, of_all, known) in enumerate(epochs):
        if index == stopped_after:
            progress = Progress(**json.loads(json.dumps(asdict(progress))))
        scores = DevScores({"cider": of_all / 10} if known else None, {"cider": subset / 10}, subset_images=200)
        progress.step = 1
        progress.learning_rates = {"captioner": 1.0}
        entry = progress.epoch_entry("only", scores)
        assert entry.get("dev_subset") == (None if known else 200)
        assert entry["cider"] == (of_all if known else subset) / 10
        history.append(subset)
        expected_stale = len(history) - 1 - history.index(max(history))
        assert progress.stale_epochs_after(scores) == expected_stale
        if progress.end_epoch(scores):
            best = index
        assert progress.stale_epochs == expected_stale
        known_so_far = [epoch for epoch in epochs[: index + 1] if epoch[2]]
        ranks = [(known, of_all) if known_so_far else (False, subset) for subset, of_all, known in epochs[: index + 1]]
        assert best == ranks.index(max(ranks))
    assert progress.best_is_of_subset == (not any(known for _, _, known in epochs))
