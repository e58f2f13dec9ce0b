"""Teach YOLOX-nano the robot's frames: squashed to 224 x 224, with boxes of a teacher and of rendered households.

    python -m training.detection.train DETECTOR --data CONFIG --labels FILE ... -o OUT.safetensors

DETECTOR is the released ``yolox_nano.onnx``, or what this command has written; OUT goes into an experiment as
``yolox``. Photographs are those of the experiment CONFIG, seen in a new random view in every epoch. On those without
labels the detector learns to answer as before, so that it forgets nothing; its heads alone learn, its feature maps,
which captioners look at too, stay. Start the same command again to go on after a kill, from the last whole epoch.
"""

import argparse
import copy
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from training.arguments import positive
from training.checkpoint import (
    load_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
    under_prefix,
    with_prefix,
)
from training.commands import exit_status
from training.configs.schema import PhaseConfig, load_config
from training.data.augmentation import random_view
from training.data.datasets import CaptionDataset, open_dataset, provenance
from training.data.loading import load_ahead, loading_threads
from training.detection.labels import Labels, read_labels
from training.detection.loss import Targets, detection_loss, keeping_loss, targets_of
from training.detection.sampling import draw_epoch, repeat_factors
from training.engine.distributed import Engine, EngineError, choose_device
from training.engine.moving_average import WeightAverage
from training.engine.schedules import SCHEDULES
from training.engine.step import LARGEST_GRADIENT
from training.errors import BackboneError, CheckpointError, ConfigError, DataError, TrainingError
from training.paths import data_folder
from training.vision.detection_classes import DETECTION_CLASSES
from training.vision.trained_detector import TrainedDetector, with_classes
from training.vision.yolox import YoloxNano, YoloxOutput


def main() -> int:
    arguments = _parser().parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    said = (BackboneError, CheckpointError, ConfigError, DataError, EngineError, TrainingError, ValueError)
    stopped = "stopped; the same command goes on after the last whole epoch"
    return exit_status(lambda: run(arguments), said, arguments.output, stopped)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.detection.train", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("detector", type=Path, help="yolox_nano.onnx, or a file of this command")
    parser.add_argument("--data", type=Path, required=True, metavar="CONFIG", help="experiment whose data set to take")
    parser.add_argument(
        "--labels", nargs="+", required=True, metavar="FILE",
        help="of python -m training.label_objects; NAME=FILE for the data set NAME of a mixture",
    )  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, required=True, help="safetensors file to write")
    parser.add_argument("--epochs", type=positive, default=3, help="(default: %(default)s)")
    parser.add_argument("--images-per-batch", type=positive, default=20, help="(default: %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="at its peak (default: %(default)s)")
    parser.add_argument("--crop", type=float, default=0.6, help="smallest share of a side in a view (default: 0.6)")
    parser.add_argument("--average", type=float, default=0.998, help="of the weights, a step (default: %(default)s)")
    parser.add_argument(
        "--keep", type=float, default=4.0, metavar="WEIGHT",
        help="of staying as it was on photographs without labels; 0 leaves them out (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--threads", type=positive, help="CPU threads (default: all)")
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Train, and write the detector.

    Raises:
        BackboneError, CheckpointError: the detector is missing or malformed.
        DataError: photographs or labels are missing or malformed.
        TrainingError: the loss is no longer finite.
    """
    trained = TrainedDetector.load(arguments.detector)
    config = load_config(arguments.data)
    engine = Engine(choose_device(arguments.device), config.precision)
    labels = read_labels(arguments.labels, Path(), DETECTION_CLASSES)
    dataset = open_dataset(config.data, data_folder())
    images = dataset.split("train")
    labelled = [image for image in images if image in labels.boxes]
    if not labelled:
        raise DataError(f"--labels: no photograph of the training split has labels; it has {images[0]}")
    if not arguments.keep:
        images = labelled
    dataset.check_photographs(images)
    torch.manual_seed(arguments.seed)
    detector = with_classes(trained.detector, DETECTION_CLASSES)
    detector.to(engine.device)
    _Run(detector, dataset, images, labels, engine, arguments).train()
    known = list(trained.record["trained_on"])
    record = {
        **trained.record, "trained_on": known + [entry for entry in provenance(config.data) if entry not in known],
        "boxes_by": labels.made_by, "photographs": len(labelled),
        "photographs_kept": len(images) - len(labelled), "epochs": arguments.epochs,
    }  # fmt: skip
    TrainedDetector(detector.eval(), record).save(arguments.output)
    arguments.output.with_name(f"{arguments.output.name}.unfinished").unlink()
    print(f"{arguments.output}: a detector of {len(DETECTION_CLASSES)} classes, from {len(images)} photographs")


class _Run:
    """The epochs; what is not finished is beside the file to be written."""

    def __init__(
        self,
        detector: YoloxNano,
        dataset: CaptionDataset,
        images: list[str],
        labels: Labels,
        engine: Engine,
        arguments: argparse.Namespace,
    ) -> None:
        """
        Raises:
            TrainingError: what is unfinished was begun with other settings.
        """
        self.unfinished = arguments.output.with_name(f"{arguments.output.name}.unfinished")
        self._detector, self._dataset, self._images, self._labels = detector, dataset, images, labels
        detector.network.requires_grad_(False)
        self._head_before, self._keep_weight = copy.deepcopy(detector.head).requires_grad_(False), arguments.keep
        self._factors, self._engine, self._crop = repeat_factors(labels, images), engine, arguments.crop
        self._batch, self._epochs, self._seed = arguments.images_per_batch, arguments.epochs, arguments.seed
        self._schedule = PhaseConfig(
            name="detector", epochs=arguments.epochs, learning_rate=arguments.learning_rate, warmup_steps=100
        )
        settings = {key: str(value) for key, value in sorted(vars(arguments).items())}
        self._settings = {key: value for key, value in settings.items() if key not in ("threads", "device")}
        self._optimizer = torch.optim.AdamW(detector.head.parameters(), lr=arguments.learning_rate, weight_decay=1e-4)
        self._average = WeightAverage(detector, arguments.average)
        self._epoch = 0
        if self.unfinished.exists():
            self._go_on()

    def train(self) -> None:
        """To the end; the detector then has the average of its weights.

        Raises:
            DataError: a photograph cannot be read.
            TrainingError: the loss is no longer finite.
        """
        while self._epoch < self._epochs:
            loss = self._train_epoch()
            tqdm.write(f"epoch {self._epoch + 1}/{self._epochs}  detection_loss {loss:.4f}")
            self._epoch += 1
            self._keep()
        self._average.settle()

    def _go_on(self) -> None:
        tensors, state = load_checkpoint(self.unfinished)
        if state["settings"] != self._settings:
            raise TrainingError(f"{self.unfinished} was begun with other settings; remove it to start afresh")
        self._detector.load_state_dict(under_prefix("detector", tensors))
        self._average.restore(under_prefix("average", tensors))
        restore_optimizer(self._optimizer, under_prefix("optimizer", tensors))
        self._epoch = state["epoch"]

    def _keep(self) -> None:
        tensors = {
            **with_prefix("detector", self._detector.state_dict()),
            **with_prefix("average", self._average.tensors),
            **with_prefix("optimizer", optimizer_tensors(self._optimizer)),
        }
        save_checkpoint(self.unfinished, tensors, {"epoch": self._epoch, "settings": self._settings})

    def _read(self, places: np.ndarray, random: np.random.Generator) -> tuple[torch.Tensor, Targets]:
        names = [self._images[place] for place in places]
        seen = [
            random_view(frame, bool(random.random() < 0.5), self._crop, random)
            for frame in self._dataset.read_images(names)
        ]
        frames = torch.from_numpy(np.stack([frame for frame, _ in seen]))
        return frames, targets_of(self._labels, names, [view for _, view in seen])

    def _train_epoch(self) -> float:
        order = draw_epoch(self._factors, np.random.default_rng((self._seed, self._epoch)))
        starts = range(0, len(order), self._batch)

        def read(start: int) -> tuple[torch.Tensor, Targets]:
            random = np.random.default_rng((self._seed, self._epoch, start))
            return self._read(order[start : start + self._batch], random)

        total, done = 0.0, 0
        with (
            closing(load_ahead(read, starts, loading_threads(1))) as reading,
            tqdm(total=len(order), unit="image", desc=f"epoch {self._epoch + 1}/{self._epochs}", leave=False) as bar,
        ):
            for index, (frames, targets) in enumerate(reading):
                step = self._epoch * len(starts) + index
                share = SCHEDULES[self._schedule.schedule](step, self._epochs * len(starts), self._schedule, 1)
                for group in self._optimizer.param_groups:
                    group["lr"] = self._schedule.learning_rate * share
                total += self._step(frames, targets) * len(frames)
                done += len(frames)
                bar.update(len(frames))
                bar.set_postfix(loss=f"{total / done:.3f}", refresh=False)
        return total / done

    def _step(self, frames: torch.Tensor, targets: Targets) -> float:
        self._optimizer.zero_grad(set_to_none=True)
        frames, targets = self._engine.to_device((frames, targets))
        pixels, detector = frames.permute(0, 3, 1, 2).float(), self._detector
        with torch.no_grad(), self._engine.autocast():
            levels = detector.network(pixels)
        with self._engine.autocast():
            found = detector.raw_detections(YoloxOutput(levels, detector.head(levels)))
        loss = detection_loss(found, targets, detector.cells, detector.strides)
        kept = ~targets.sought.any(dim=1)
        if kept.any():
            with torch.no_grad(), self._engine.autocast():
                before = detector.raw_detections(YoloxOutput(levels, self._head_before(levels)))
            loss = loss + self._keep_weight * keeping_loss(found, before, kept)
        loss = loss / len(frames)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(detector.head.parameters(), LARGEST_GRADIENT)
        value = float(loss.detach())
        if not np.isfinite(value):
            raise TrainingError(f"the loss of the detector is {value}; lower --learning-rate")
        self._optimizer.step()
        self._average.update()
        return value


if __name__ == "__main__":
    sys.exit(main())
