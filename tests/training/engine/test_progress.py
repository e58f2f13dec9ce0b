"""Steps of a run and its best epoch."""

from training.configs.schema import PhaseConfig
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
