"""A run's TensorBoard files, read as TensorBoard reads them."""

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def scalars(run, tag):
    """Values by step."""
    events = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    found = events.Scalars(tag)
    assert len({event.step for event in found}) == len(found), "a step is there twice"
    return {event.step: event.value for event in found}
