"""YOLOX-nano's weights: from the file that its authors released, or from one of ours."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from smart_caption_ros.detection.class_names import COCO_CLASSES
from training.checkpoint import load_checkpoint, save_checkpoint
from training.errors import BackboneError
from training.vision.released_weights import read_onnx
from training.vision.yolox import YoloxNano

RELEASED = {"name": "COCO, through the YOLOX-nano weights that Megvii released", "terms": "weights Apache-2.0"}


@dataclass
class TrainedDetector:
    """A detector, and what is known of it."""

    detector: YoloxNano
    record: dict[str, Any] = field(default_factory=dict)
    """Plain facts: labels, whose boxes they are, epochs."""

    def save(self, path: Path) -> None:
        """Write one safetensors file, atomically."""
        state = {"class_names": self.detector.class_names, "record": self.record}
        save_checkpoint(path, self.detector.state_dict(), state)

    @classmethod
    def load(cls, path: Path) -> "TrainedDetector":
        """Read what :meth:`save` wrote, or the ONNX file that YOLOX' authors released; in evaluation mode.

        Raises:
            BackboneError: the file is missing, or holds other layers.
            CheckpointError: it is a malformed safetensors file.
        """
        if not path.is_file():
            raise BackboneError(f"{path}: no such file; set SMART_CAPTION_DATA to the folder that holds detectors/")
        if path.suffix == ".onnx":
            return cls(_released(path).eval(), {"trained_on": [RELEASED]})
        tensors, state = load_checkpoint(path)
        if "class_names" not in state:
            raise BackboneError(f"{path} is no detector of `python -m training.detection.train`")
        detector = YoloxNano(state["class_names"])
        detector.load_state_dict(tensors)
        return cls(detector.eval(), state["record"])


def _released(path: Path) -> YoloxNano:
    detector = YoloxNano(COCO_CLASSES)
    convolutions, layers = detector.convolutions(), read_onnx(path)
    if len(layers) != len(convolutions):
        raise BackboneError(f"{path}: {len(layers)} convolutions, YOLOX-nano has {len(convolutions)}")
    with torch.no_grad():
        for index, (convolution, (weight, bias)) in enumerate(zip(convolutions, layers, strict=True)):
            if tuple(convolution.weight.shape) != weight.shape:
                wanted = tuple(convolution.weight.shape)
                raise BackboneError(f"{path}: convolution {index} is {weight.shape}, YOLOX-nano has {wanted}")
            convolution.weight.copy_(torch.from_numpy(np.array(weight)))
            assert convolution.bias is not None
            convolution.bias.copy_(torch.from_numpy(np.array(bias)))
    return detector


def with_classes(detector: YoloxNano, class_names: Sequence[str]) -> YoloxNano:
    """The detector for classes in another order; those that it does not know begin as unlikely ones."""
    changed, theirs = YoloxNano(class_names), detector.class_names
    known = [(place, theirs.index(name)) for place, name in enumerate(class_names) if name in theirs]
    places, origins = [place for place, _ in known], [origin for _, origin in known]
    tensors = detector.state_dict()
    for name, own in changed.state_dict().items():
        if ".class_logits." in name:
            own[places] = tensors[name][origins]
        else:
            own.copy_(tensors[name])
    return changed.eval()
