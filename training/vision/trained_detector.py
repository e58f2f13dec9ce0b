"""Weights of YOLOX-nano: from the file that its authors released, or from a run with ``task: detection``."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smart_caption_ros.detection.class_names import COCO_CLASSES
from training.checkpoint import load_checkpoint, save_checkpoint
from training.errors import BackboneError
from training.vision.weight_files import copy_convolutions, read_onnx
from training.vision.yolox import YoloxNano

RELEASED = {"name": "COCO, through the YOLOX-nano weights that Megvii released", "terms": "weights Apache-2.0"}


@dataclass
class TrainedDetector:
    """A detector and its record."""

    detector: YoloxNano
    record: dict[str, Any] = field(default_factory=dict)
    """JSON values: labels and their origin, epochs."""

    def save(self, path: Path) -> None:
        """Write one safetensors file, atomically."""
        state = {"class_names": self.detector.class_names, "record": self.record}
        save_checkpoint(path, self.detector.state_dict(), state)

    @classmethod
    def load(cls, path: Path) -> "TrainedDetector":
        """Read a file of :meth:`save`, or the ONNX file that the authors of YOLOX released; in evaluation mode.

        Raises:
            BackboneError: the file is missing, or holds other layers.
            CheckpointError: the safetensors file is malformed.
        """
        if not path.is_file():
            raise BackboneError(f"{path}: no such file; set SMART_CAPTION_DATA to the folder that holds detectors/")
        if path.suffix == ".onnx":
            return cls(_load_released(path).eval(), {"trained_on": [RELEASED]})
        tensors, state = load_checkpoint(path)
        if "class_names" not in state:
            raise BackboneError(f"{path} is no detector of a run with `task: detection`")
        detector = YoloxNano(state["class_names"])
        detector.load_state_dict(tensors)
        return cls(detector.eval(), state["record"])


def _load_released(path: Path) -> YoloxNano:
    detector = YoloxNano(COCO_CLASSES)
    copy_convolutions(read_onnx(path), detector.convolutions(), path, "YOLOX-nano")
    return detector


def with_classes(detector: YoloxNano, class_names: Sequence[str]) -> YoloxNano:
    """Construct the same detector for other classes; heads of new classes keep their initial, low probability."""
    changed, old_names = YoloxNano(class_names), detector.class_names
    kept = [index for index, name in enumerate(class_names) if name in old_names]
    origins = [old_names.index(class_names[index]) for index in kept]
    tensors = detector.state_dict()
    for name, tensor in changed.state_dict().items():
        if ".class_logits." in name:
            tensor[kept] = tensors[name][origins]
        else:
            tensor.copy_(tensors[name])
    return changed.eval()
