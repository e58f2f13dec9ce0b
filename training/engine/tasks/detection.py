"""Task of training the detector beside the backbone: YOLOX-nano on frames squashed to 224 x 224.

The detector learns boxes from images with labels; on images without labels its output is kept as it was (Learning
without Forgetting). Only the heads learn, because the captioner's visual tokens contain the detector's feature maps.
"""

import copy
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from training.checkpoint import under_prefix, with_prefix
from training.configs.schema import DetectionExperimentConfig, DetectionPhaseConfig, TrainingConfig
from training.data.augmentation import image_generators, random_view
from training.data.datasets import merge_provenance, open_dataset, provenance
from training.detection.labels import read_labels
from training.detection.loss import Targets, detection_loss, keeping_loss, targets_of
from training.detection.sampling import draw_epoch, repeat_factors
from training.engine.dev_scores import DevScores
from training.engine.distributed import Processes
from training.engine.tasks.task import Learning
from training.errors import DataError
from training.models.captioner import HookContext
from training.objectives.objective import BatchLoss
from training.paths import CHECKOUT
from training.vision.detection_classes import DETECTION_CLASSES
from training.vision.released_weights import locate
from training.vision.trained_detector import TrainedDetector, with_classes
from training.vision.yolox import YoloxOutput


class Frames(NamedTuple):
    """Frames of a batch and their boxes."""

    image_bgr: Tensor
    """(B, 224, 224, 3) uint8."""
    targets: Targets


class DetectionTask:
    """Trains the heads of a detector on photographs with and without labels."""

    Config: ClassVar[type[TrainingConfig]] = DetectionExperimentConfig
    result_file: ClassVar[str] = "detector.safetensors"
    selection: ClassVar[str | None] = None
    score_columns: ClassVar[Mapping[str, str]] = {"loss": "loss"}
    max_loss = float("inf")

    def __init__(self, config: DetectionExperimentConfig, data: Path, cache: Path, processes: Processes) -> None:
        """
        Args:
            config: the experiment.
            data: folder of the data sets and released weights.
            cache: not used.
            processes: processes of the run.

        Raises:
            BackboneError, CheckpointError: the detector is missing or malformed.
            DataError: photographs or labels are missing or malformed.
        """
        self.config, self._processes = config, processes
        self._first = TrainedDetector.load(locate(config.detector, data / "detectors"))
        self._labels = read_labels(config.labels, CHECKOUT, DETECTION_CLASSES)
        self._dataset = open_dataset(config.data, data)
        self.images = self._dataset.split("train")
        labelled = np.array([image in self._labels.boxes for image in self.images])
        if not labelled.any():
            raise DataError(f"labels: no photograph of the training split has labels; it has {self.images[0]}")
        self._places = [np.flatnonzero(labelled | bool(phase.keep)) for phase in config.phases]
        self._dataset.check_photographs([self.images[place] for place in np.unique(np.concatenate(self._places))])
        self._factors = [
            repeat_factors(self._labels, [self.images[place] for place in places]) for places in self._places
        ]
        torch.manual_seed(config.seed)
        self.detector = with_classes(self._first.detector, DETECTION_CLASSES)
        self.detector.network.requires_grad_(False)
        self._first_head = copy.deepcopy(self.detector.head).requires_grad_(False)
        self._record = {
            **self._first.record,
            "trained_on": merge_provenance(self._first.record["trained_on"], provenance(config.data)),
            "boxes_by": self._labels.made_by,
            "photographs": int(labelled.sum()),
            "photographs_kept": max(len(places) for places in self._places) - int(labelled.sum()),
        }
        self._phase = 0

    def prepare(self) -> None:
        for module in (self.detector, self._first_head):
            module.to(self._processes.device)
            if self.config.compile:
                module.compile()

    def epoch_size(self, phase: int, random: np.random.Generator) -> int:
        return len(draw_epoch(self._factors[phase], random))

    def learning(self, phase: int) -> dict[str, Learning]:
        return {"detector": Learning(self.detector.head, self.config.phases[phase].learning_rate)}

    def begin_phase(self, phase: int) -> None:
        self._phase = phase

    def end_phase(self) -> None:
        pass

    def begin_epoch(self, epoch: int, random: np.random.Generator) -> np.ndarray:
        return self._places[self._phase][draw_epoch(self._factors[self._phase], random)]

    def loss_weights(self, images: np.ndarray) -> np.ndarray:
        return np.ones(len(images))

    def costs(self, images: np.ndarray) -> np.ndarray:
        return np.ones(len(images))

    def read(self, images: np.ndarray, random: np.random.Generator) -> Frames:
        names = [self.images[image] for image in images]
        view = partial(_random_view, self.config.phases[self._phase])
        views = list(map(view, self._dataset.read_images(names), image_generators(random, images)))
        frames = torch.from_numpy(np.stack([frame for frame, _ in views]))
        return Frames(frames, targets_of(self._labels, names, [view for _, view in views]))

    def loss(self, inputs: Frames, images: np.ndarray) -> BatchLoss:
        detector, targets = self.detector, inputs.targets
        with torch.no_grad():
            levels = detector.network(inputs.image_bgr.permute(0, 3, 1, 2).float())
        found = detector.raw_detections(YoloxOutput(levels, detector.head(levels)))
        kept = ~targets.labelled_classes.any(dim=1)
        with torch.no_grad():
            before = detector.raw_detections(YoloxOutput(levels, self._first_head(levels))) if kept.any() else None
        # Binary cross-entropy of probabilities is not defined under autocast.
        with torch.autocast(self._processes.device.type, enabled=False):
            loss = detection_loss(found, targets, detector.cells, detector.strides)
            if before is not None:
                loss = loss + self.config.phases[self._phase].keep * keeping_loss(found, before, kept)
            return BatchLoss(loss / len(images))

    def on_epoch(self, context: HookContext) -> None:
        pass

    def on_step(self, context: HookContext) -> None:
        pass

    def changing_buffers(self) -> dict[str, Tensor]:
        return {}

    def evaluate(self, epochs_left: int) -> DevScores:
        """Return no scores: the last weights are the result. `python -m benchmarks.detection` measures a detector."""
        return DevScores({})

    def tensors(self) -> dict[str, Tensor]:
        return with_prefix("detector", self.detector.state_dict())

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        self.detector.load_state_dict(under_prefix("detector", dict(tensors)))

    def save(self, path: Path, epoch: Mapping[str, Any]) -> None:
        TrainedDetector(self.detector, {**self._record, "epochs": epoch["epoch"]}).save(path)


def _random_view(phase: DetectionPhaseConfig, image_bgr: np.ndarray, random: np.random.Generator) -> Any:
    flip = phase.flip and bool(random.random() < 0.5)
    return random_view(image_bgr, flip, phase.crop, random)
