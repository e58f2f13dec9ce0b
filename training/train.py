"""Train a captioner: ``python -m training.train CONFIG [--run FOLDER]``. Start it again to go on after a kill.

Under torchrun the same command is one run in several processes:
``torchrun --nproc-per-node 4 -m training.train CONFIG``.
"""

import argparse
import sys
from pathlib import Path

import torch
from rich.console import Console

from training.configs.schema import ExperimentConfig, load_config
from training.engine.distributed import Engine, EngineError, OtherProcessError, choose_device
from training.engine.trainer import Trainer
from training.errors import BackboneError, CheckpointError, ConfigError, DataError, TrainingError
from training.paths import CHECKOUT, data_folder

SAID = (BackboneError, CheckpointError, ConfigError, DataError, EngineError, TrainingError)
"""Errors whose message is a sentence for the user."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m training.train", description=__doc__)
    parser.add_argument("config", type=Path, help="experiment file, e.g. training/configs/smart_flickr8k.yaml")
    parser.add_argument("--run", type=Path, help="folder of the run (default: runs/<name of the experiment>)")
    parser.add_argument("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda or cuda:N")
    parser.add_argument("--threads", type=int, help="CPU threads of a process (default: all, or as torchrun says)")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    device, config = torch.device("cpu"), None
    problem: ConfigError | EngineError | None = None
    try:
        config, device = load_config(arguments.config), choose_device(arguments.device)
    except (ConfigError, EngineError) as error:
        problem = error
    # The processes must know one another before one can say for all what is wrong.
    engine = Engine(device, config.precision if config else "fp32")
    code = _train(engine, config, problem, arguments.run)
    engine.close()
    return code


def _train(engine: Engine, config: ExperimentConfig | None, problem: Exception | None, run: Path | None) -> int:
    try:
        with engine.together():
            if problem is not None:
                raise problem
        assert config is not None
        folder = run or CHECKOUT / "runs" / config.name
        trainer = Trainer(config, data_folder(), folder, CHECKOUT / "runs" / "features", engine)
        trainer.run()
    except SAID as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    except OtherProcessError:
        return 1
    except RuntimeError as error:
        if not engine.has_lost(error):
            raise
        print("error: another process is gone; the same command goes on from the last checkpoint", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        if engine.is_first:
            print("stopped; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130
    if engine.is_first:
        Console().print(trainer.summary())
        print(f"best model by dev CIDEr: {folder / 'best.safetensors'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
