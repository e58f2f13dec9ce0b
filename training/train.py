"""Train a captioner: ``python -m training.train CONFIG [--run FOLDER]``. Start it again to go on after a kill."""

import argparse
import sys
from pathlib import Path

import torch

from training.backbones import BackboneError
from training.checkpoint import CheckpointError
from training.config import ConfigError, load_config
from training.data.flickr8k import DataError
from training.data.folder import CHECKOUT, data_folder
from training.trainer import Trainer, TrainingError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m training.train", description=__doc__)
    parser.add_argument("config", type=Path, help="experiment file, e.g. training/configs/smart_flickr8k.yaml")
    parser.add_argument("--run", type=Path, help="folder of the run (default: runs/<name of the experiment>)")
    parser.add_argument("--threads", type=int, help="CPU threads (default: all)")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    try:
        config = load_config(arguments.config)
        folder = arguments.run or CHECKOUT / "runs" / config.name
        Trainer(config, data_folder(), folder, CHECKOUT / "runs" / "features").run()
    except (BackboneError, CheckpointError, ConfigError, DataError, TrainingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130
    print(f"best model by dev CIDEr: {folder / 'best.safetensors'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
