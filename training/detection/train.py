"""Train a detection head alone, on the backbone of a finished captioner, which stays as it is.

    python -m training.detection.train CHECKPOINT --labels FILE ... -o OUT.safetensors

OUT is the checkpoint with the head; its captions are the same. What the backbone sees is computed once, for some random
views of each photograph, and kept beside OUT while the head learns: 326 kB a view. Start the same command again to go
on after a kill, from the last whole epoch. (To let the backbone learn from the boxes as well, give the experiment a
``detection:`` section.)
"""

import argparse
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from training.arguments import positive
from training.averaging import WeightAverage
from training.backbones import BackboneError
from training.batches import load_ahead, loading_threads
from training.captioning import TrainedCaptioner
from training.checkpoint import (
    CheckpointError,
    load_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
    under_prefix,
    with_prefix,
)
from training.commands import exit_status
from training.config import ConfigError, DetectionConfig, PhaseConfig, load_config, parse_config
from training.data.datasets import open_dataset
from training.data.flickr8k import DataError
from training.data.folder import data_folder
from training.detection.cached_views import CachedViews
from training.detection.classes import DETECTION_CLASSES
from training.detection.head import DetectionHead
from training.detection.labels import read_labels
from training.detection.loss import Targets, detection_loss
from training.detection.sampling import draw_epoch, repeat_factors
from training.engine import Engine, EngineError, choose_device
from training.schedules import SCHEDULES
from training.step import LARGEST_GRADIENT, TrainingError


def main() -> int:
    arguments = _parser().parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    said = (BackboneError, CheckpointError, ConfigError, DataError, EngineError, TrainingError, ValueError)
    stopped = "stopped; the same command goes on after the last whole epoch"
    return exit_status(lambda: run(arguments), said, arguments.output, stopped)


def _parser() -> argparse.ArgumentParser:
    defaults = DetectionConfig()
    parser = argparse.ArgumentParser(
        prog="python -m training.detection.train", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("checkpoint", type=Path, help="best.safetensors of a run with a backbone")
    parser.add_argument(
        "--labels", nargs="+", required=True, metavar="FILE",
        help="of python -m training.detection.label; NAME=FILE for the data set NAME of a mixture",
    )  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, required=True, help="safetensors file to write")
    parser.add_argument(
        "--data", type=Path, metavar="CONFIG", help="experiment whose data set to take (default: the checkpoint's own)"
    )
    parser.add_argument("--epochs", type=positive, default=20, help="(default: %(default)s)")
    parser.add_argument("--images-per-batch", type=positive, default=20, help="(default: %(default)s)")
    parser.add_argument(
        "--learning-rate", type=float, default=defaults.learning_rate, help="at its peak (default: %(default)s)"
    )
    parser.add_argument("--width", type=positive, default=defaults.width, help="of the head (default: %(default)s)")
    parser.add_argument("--views", type=positive, default=3, help="of each photograph (default: %(default)s)")
    parser.add_argument("--crop", type=float, default=0.6, help="smallest share of a side in a view (default: 0.6)")
    parser.add_argument("--average", type=float, default=0.998, help="of the weights, a step (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--threads", type=positive, help="CPU threads (default: all)")
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Train, and write the checkpoint with the head.

    Raises:
        CheckpointError: the checkpoint is missing or malformed.
        DataError: photographs or labels are missing or malformed.
        TrainingError: the checkpoint has no backbone, or the loss is no longer finite.
    """
    trained = TrainedCaptioner.load(arguments.checkpoint)
    if trained.backbone is None:
        raise TrainingError(f"{arguments.checkpoint} has no backbone: there is nothing to see with")
    given = arguments.data
    config = load_config(given) if given else parse_config(trained.record["experiment"], str(arguments.checkpoint))
    engine = Engine(choose_device(arguments.device), config.precision)
    labels = read_labels(arguments.labels, Path(), DETECTION_CLASSES)
    dataset = open_dataset(config.data, data_folder())
    images = [image for image in dataset.split("train") if image in labels.boxes]
    if not images:
        raise DataError(f"--labels: no photograph of the training split has labels; it has {dataset.split('train')[0]}")
    dataset.check_photographs(images)
    torch.manual_seed(arguments.seed)
    trained.detector = DetectionHead(DETECTION_CLASSES, arguments.width)
    for module in (trained.backbone, trained.detector):
        module.to(engine.device)
    run = _Run(trained.detector, repeat_factors(labels, images), engine, arguments)
    views = CachedViews(run.unfinished, images, labels, arguments.views)
    views.fill(dataset, trained.backbone, engine, arguments.crop, arguments.seed)
    run.train(views)
    views.remove()
    trained.detector.eval()
    trained.record = {
        **trained.record,
        "boxes_by": labels.made_by,
        "detector": {"labels": arguments.labels, "photographs": len(images), "epochs": arguments.epochs},
    }
    trained.save(arguments.output)
    print(f"{arguments.output}: a detector of {len(DETECTION_CLASSES)} classes, from {len(images)} photographs")


class _Run:
    """The epochs; what is not finished is beside the file to be written."""

    def __init__(
        self, head: DetectionHead, factors: NDArray[np.float64], engine: Engine, arguments: argparse.Namespace
    ) -> None:
        """
        Args:
            factors: (images,) how often an epoch has each photograph.

        Raises:
            TrainingError: what is unfinished was begun with other settings.
        """
        self.unfinished = arguments.output.with_name(f"{arguments.output.name}.unfinished")
        self._head, self._factors, self._engine = head, factors, engine
        self._batch, self._epochs, self._seed = arguments.images_per_batch, arguments.epochs, arguments.seed
        self._schedule = PhaseConfig(
            name="detector", epochs=arguments.epochs, learning_rate=arguments.learning_rate, warmup_steps=100
        )
        settings = {key: str(value) for key, value in sorted(vars(arguments).items())}
        self._settings = {key: value for key, value in settings.items() if key not in ("threads", "device")}
        self._optimizer = torch.optim.AdamW(head.parameters(), lr=arguments.learning_rate, weight_decay=1e-4)
        self._average = WeightAverage(head, arguments.average)
        self._epoch = 0
        self._go_on()

    def train(self, views: CachedViews) -> None:
        """To the end; the head then has the average of its weights.

        Raises:
            TrainingError: the loss is no longer finite.
        """
        while self._epoch < self._epochs:
            loss = self._train_epoch(views)
            tqdm.write(f"epoch {self._epoch + 1}/{self._epochs}  detection_loss {loss:.4f}")
            self._epoch += 1
            self._keep()
        self._average.settle()
        self.unfinished.unlink(missing_ok=True)

    def _go_on(self) -> None:
        if not self.unfinished.exists():
            self._keep()  # says what the maps beside it are of
            return
        tensors, state = load_checkpoint(self.unfinished)
        if state["settings"] != self._settings:
            raise TrainingError(f"{self.unfinished} was begun with other settings; remove it to start afresh")
        self._head.load_state_dict(under_prefix("detector", tensors))
        self._average.restore(under_prefix("average", tensors))
        restore_optimizer(self._optimizer, under_prefix("optimizer", tensors))
        self._epoch = state["epoch"]

    def _keep(self) -> None:
        tensors = {
            **with_prefix("detector", self._head.state_dict()),
            **with_prefix("average", self._average.tensors),
            **with_prefix("optimizer", optimizer_tensors(self._optimizer)),
        }
        save_checkpoint(self.unfinished, tensors, {"epoch": self._epoch, "settings": self._settings})

    def _train_epoch(self, views: CachedViews) -> float:
        random = np.random.default_rng((self._seed, self._epoch))
        order = draw_epoch(self._factors, random)
        which = random.integers(0, views.count, len(order))
        starts = range(0, len(order), self._batch)

        def read(start: int) -> tuple[list[Tensor], Targets]:
            return views.read(order[start : start + self._batch], which[start : start + self._batch])

        total, done = 0.0, 0
        with (
            closing(load_ahead(read, starts, loading_threads(1))) as reading,
            tqdm(total=len(order), unit="view", desc=f"epoch {self._epoch + 1}/{self._epochs}", leave=False) as bar,
        ):
            for index, (levels, targets) in enumerate(reading):
                step = self._epoch * len(starts) + index
                share = SCHEDULES[self._schedule.schedule](
                    step, self._epochs * len(starts), self._schedule, self._head.width
                )
                for group in self._optimizer.param_groups:
                    group["lr"] = self._schedule.learning_rate * share
                views_read = len(targets.scores)
                total += self._step(levels, targets) * views_read
                done += views_read
                bar.update(views_read)
                bar.set_postfix(loss=f"{total / done:.3f}", refresh=False)
        return total / done

    def _step(self, levels: list[Tensor], targets: Targets) -> float:
        self._optimizer.zero_grad(set_to_none=True)
        levels, targets = self._engine.to_device((levels, targets))
        with self._engine.autocast():
            found = self._head(levels)
        loss = detection_loss(found, targets, self._head.cells, self._head.strides) / len(targets.scores)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._head.parameters(), LARGEST_GRADIENT)
        value = float(loss.detach())
        if not np.isfinite(value):
            raise TrainingError(f"the loss of the detector is {value}; lower --learning-rate")
        self._optimizer.step()
        self._average.update()
        return value


if __name__ == "__main__":
    sys.exit(main())
