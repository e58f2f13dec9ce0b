"""Learning rates step by step."""

import pytest

from training.configs.schema import PhaseConfig
from training.engine.schedules import SCHEDULES


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
