"""Learning rates step by step."""

from itertools import pairwise

import pytest
import torch

from training.configs.schema import PhaseConfig
from training.engine.optimizers import make_optimizer
from training.engine.schedules import SCHEDULES, make_scheduler


def rates(schedule, steps, total=100, **settings):
    phase = PhaseConfig(name="p", epochs=1, learning_rate=1.0, schedule=schedule, **settings)
    return [SCHEDULES[schedule](step, total, phase) for step in steps]


def test_noam_rises_linearly_to_step_w_and_falls_with_the_root_of_the_step():
    found = rates("noam", range(40_000), warmup_steps=10_000)
    peak = 512**-0.5 * 10_000**-0.5
    assert max(found) == pytest.approx(peak) == pytest.approx(found[9_999])
    assert found[0] == pytest.approx(peak / 10_000)
    assert found[4_999] == pytest.approx(peak / 2)
    assert found[39_999] == pytest.approx(peak / 2)


def test_cosine_warms_up_and_falls_to_its_final_share():
    found = rates("cosine", range(101), warmup_steps=10, final_share=0.2)
    assert found[0] == pytest.approx(0.1)
    assert found[10] == pytest.approx(1.0)
    assert found[55] == pytest.approx(0.6)
    assert found[100] == pytest.approx(0.2)
    assert sorted(found[10:], reverse=True) == found[10:]


@pytest.mark.parametrize("warmup_steps", [0, 4])
def test_constant_stays_at_the_rate_after_its_warm_up(warmup_steps):
    found = rates("constant", range(20), warmup_steps=warmup_steps)
    assert found[warmup_steps:] == [1.0] * (20 - warmup_steps)
    assert found[:warmup_steps] == pytest.approx([0.25, 0.5, 0.75, 1.0][:warmup_steps])


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


def test_the_rate_of_noam_depends_on_schedule_width():
    wide, narrow = (rates("noam", range(3), warmup_steps=2, schedule_width=width) for width in (512, 128))
    assert narrow == pytest.approx([2 * rate for rate in wide])


def test_hold_keeps_its_rate_then_falls_faster_at_first_and_stays():
    found = rates("hold", range(61), warmup_steps=10, hold_steps=20, decay_steps=40, final_share=0.04)
    assert found[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert found[10:20] == [1.0] * 10
    assert found[25] == pytest.approx(1 - 0.96 / 2)  # a quarter of the time, half of the fall
    assert found[40:] == pytest.approx([0.04] * 21)


def test_hold_needs_its_steps_in_order():
    with pytest.raises(ValueError, match="warmup_steps <= hold_steps < decay_steps"):
        rates("hold", range(1), warmup_steps=30, hold_steps=20, decay_steps=40)


def test_linear_falls_on_a_straight_line():
    assert rates("linear", range(0, 101, 25), final_share=0.2) == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])


def test_exponential_falls_by_the_same_factor_at_every_step():
    found = rates("exponential", range(1000), total=1000, final_share=0.99975**1000)
    assert found[0] == 1.0
    assert [after / before for before, after in pairwise(found)] == pytest.approx([0.99975] * 999)
