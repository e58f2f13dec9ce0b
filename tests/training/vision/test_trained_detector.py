"""Files of detectors: written, read back, and refused where they are no detector."""

from pathlib import Path

import onnx
import pytest
import torch

from export.shapes import TensorSpec
from export.torch_to_onnx import to_onnx
from training.checkpoint import save_checkpoint
from training.errors import BackboneError, CheckpointError
from training.vision.trained_detector import TrainedDetector, with_classes
from training.vision.yolox import YoloxNano

FRAME = torch.randint(0, 256, (1, 224, 224, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_a_saved_detector_is_read_back(tmp_path: Path) -> None:
    detector = YoloxNano(("cup", "bed")).eval()
    TrainedDetector(detector, {"boxes_by": ["test"]}).save(tmp_path / "detector.safetensors")
    again = TrainedDetector.load(tmp_path / "detector.safetensors")
    assert again.detector.class_names == ("cup", "bed")
    assert again.record == {"boxes_by": ["test"]}
    with torch.inference_mode():
        for one, other in zip(again.detector(FRAME), detector(FRAME), strict=True):
            torch.testing.assert_close(one, other)


def test_known_classes_keep_their_scores_when_the_classes_change() -> None:
    detector = YoloxNano(("cup", "bed", "dog")).eval()
    with torch.no_grad():
        for convolution in detector.convolutions():
            torch.nn.init.kaiming_normal_(convolution.weight)
    changed = with_classes(detector, ("dog", "toaster", "cup"))
    with torch.inference_mode():
        before, after = detector(FRAME), changed(FRAME)
    torch.testing.assert_close(after.boxes_xyxy, before.boxes_xyxy)
    torch.testing.assert_close(after.class_scores[..., [0, 2]], before.class_scores[..., [2, 0]])


def test_another_network_is_refused_with_the_first_difference(tmp_path: Path) -> None:
    graph = to_onnx(torch.nn.Conv2d(3, 8, 3), {"input": TensorSpec(torch.float32, (2, 3, 8, 8))}, ["output"])
    onnx.save(graph, str(tmp_path / "other.onnx"))
    with pytest.raises(BackboneError, match="1 convolutions, YOLOX-nano has 113"):
        TrainedDetector.load(tmp_path / "other.onnx")


def test_files_that_are_no_detector_are_named(tmp_path: Path) -> None:
    with pytest.raises(BackboneError, match=r"absent\.onnx: no such file"):
        TrainedDetector.load(tmp_path / "absent.onnx")
    save_checkpoint(tmp_path / "captioner.safetensors", {"weight": torch.zeros(2)}, {"family": "smart"})
    with pytest.raises(BackboneError, match="no detector of"):
        TrainedDetector.load(tmp_path / "captioner.safetensors")
    (tmp_path / "text.safetensors").write_text("not weights")
    with pytest.raises(CheckpointError, match=r"text\.safetensors"):
        TrainedDetector.load(tmp_path / "text.safetensors")
