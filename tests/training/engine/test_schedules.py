"""Learning rates step by step."""

import pytest
import torch

from training.configs.schema import PhaseConfig
from training.engine.optimizers import make_optimizer
from training.engine.schedules import SCHEDULES, make_scheduler


def rates(schedule, steps, **settings):
    phase = PhaseConfig(name="p", epochs=1, learning_rate=1.0, schedule=schedule, **settings)
    return [SCHEDULES[schedule](step, 100, phase) for step in steps]


PEAK = 512**-0.5 * 10_000**-0.5
WARM, FALL = {"warmup_steps": 10, "final_share": 0.2}, {"final_share": 0.2}
HOLD = {"warmup_steps": 10, "hold_steps": 20, "decay_steps": 40, "final_share": 0.04}
TABLE = [
    ("constant", {}, {0: 1, 99: 1}),
    ("constant", {"warmup_steps": 4}, {0: 0.25, 1: 0.5, 2: 0.75, 3: 1, 99: 1}),
    ("cosine", WARM, {0: 0.1, 10: 1, 55: 0.6, 100: 0.2}),
    ("noam", {"warmup_steps": 10_000}, {0: PEAK / 10_000, 4_999: PEAK / 2, 9_999: PEAK, 39_999: PEAK / 2}),
    ("noam", {"warmup_steps": 10_000, "schedule_width": 128}, {9_999: 2 * PEAK}),
    # A quarter of the time of the fall, half of the fall.
    ("hold", HOLD, {0: 0.1, 9: 1, 19: 1, 25: 1 - 0.96 / 2, 40: 0.04, 60: 0.04}),
    ("linear", FALL, {0: 1, 25: 0.8, 50: 0.6, 75: 0.4, 100: 0.2}),
    ("exponential", FALL, {0: 1, 50: 0.2**0.5, 100: 0.2}),
]


@pytest.mark.parametrize(("schedule", "settings", "expected"), TABLE)
def test_a_schedule_has_these_rates_of_100_steps(schedule, settings, expected):
    assert rates(schedule, expected, **settings) == pytest.approx([*expected.values()])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_optimizer_gets_the_rate_of_every_step_also_after_a_resume(schedule):
    phase = PhaseConfig(
        name="p", epochs=1, learning_rate=3e-4, schedule=schedule, warmup_steps=5, hold_steps=8, decay_steps=15
    )
    expected = [3e-4 * SCHEDULES[schedule](step, 20, phase) for step in range(20)]

    def used(done):
        parameter = torch.nn.Parameter(torch.zeros(1))
        group = {"params": [parameter], "lr": 3e-4, "initial_lr": 3e-4}
        optimizer = make_optimizer(phase.optimizer, [group])
        scheduler = make_scheduler(optimizer, phase, 20, done)
        found = []
        for _ in range(done, 20):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        return found

    for done in (0, 3, 11):
        assert used(done) == expected[done:]
