"""Runs of small experiments in the process of the tests."""

from tests.training.small_flickr8k import write_config
from training.engine.experiment import load_run
from training.engine.trainer import Trainer


def new_trainer(folder, data, /, *phases, cache=None, **changes):
    """The trainer of a run in ``folder/run`` on the drawn photographs, with phases and keys in place of the usual."""
    folder.mkdir(exist_ok=True)
    changes |= {"phases": list(phases)} if phases else {}
    config = load_run(write_config(folder / "config.yaml", **changes))
    return Trainer(config, data, folder / "run", cache or data / "features")


def trained(folder, data, /, *phases, **changes):
    """The trainer of a run that is finished, see :func:`new_trainer`."""
    trainer = new_trainer(folder, data, *phases, **changes)
    trainer.run()
    return trainer
