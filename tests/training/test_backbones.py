"""Released MobileNetV2 files become torch weights that give the same features."""

from pathlib import Path

import cv2
import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from export.torch_to_onnx import to_onnx
from export.verify import synthetic_images
from tests.tiny_model import tiny_trained
from training.backbones import BackboneError, load_backbone


@pytest.fixture(scope="module")
def photographs(data_dir: Path) -> np.ndarray:
    paths = sorted((data_dir / "coco_mini" / "images").glob("*.jpg"))[:8]
    return np.stack([cv2.resize(cv2.imread(str(path)), (224, 224), interpolation=cv2.INTER_AREA) for path in paths])


def released_features(path: Path, images_bgr: np.ndarray) -> np.ndarray:
    """What the released ONNX file itself computes before its global average pooling, (B, 49, 1280)."""
    model = onnx.load(str(path))
    pooled = next(node for node in model.graph.node if node.op_type == "GlobalAveragePool").input[0]
    model.graph.output.append(onnx.helper.make_tensor_value_info(pooled, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rgb = images_bgr[..., ::-1].astype(np.float32) / 127.5 - 1
    (grid,) = session.run([pooled], {session.get_inputs()[0].name: rgb})
    return grid.reshape(len(images_bgr), 1280, 49).transpose(0, 2, 1)


def test_features_of_photographs_equal_those_of_the_released_onnx_file(data_dir: Path, photographs: np.ndarray) -> None:
    path = data_dir / "backbones" / "mobilenetv2_float32.onnx"
    with torch.inference_mode():
        ours = load_backbone(path)(torch.from_numpy(photographs)).numpy()
    np.testing.assert_allclose(ours, released_features(path, photographs), atol=5e-4)


def test_the_tflite_weights_recognise_what_the_onnx_weights_recognise(data_dir: Path, photographs: np.ndarray) -> None:
    """Two trainings of one network share no features, but both must find the photographs alike or unlike."""
    similarity = []
    for name in ("tf2_mobilenet_v2_1.0_224_ptq.tflite", "mobilenetv2_float32.onnx"):
        with torch.inference_mode():
            pooled = load_backbone(data_dir / "backbones" / name)(torch.from_numpy(photographs)).mean(1)
        pooled = torch.nn.functional.normalize(pooled - pooled.mean(0), dim=1)
        similarity.append((pooled @ pooled.T)[~torch.eye(len(pooled), dtype=torch.bool)])
    assert torch.corrcoef(torch.stack(similarity))[0, 1] > 0.5


def test_an_onnx_file_of_the_network_is_read_back_exactly(tmp_path: Path) -> None:
    backbone = tiny_trained().backbone
    graph = to_onnx(backbone.layers, {"input": torch.zeros(2, 3, 224, 224)}, ["grid"], {})
    onnx.save(graph, str(tmp_path / "backbone.onnx"))
    images = torch.from_numpy(synthetic_images(2, 224))
    with torch.inference_mode():
        torch.testing.assert_close(load_backbone(tmp_path / "backbone.onnx")(images), backbone(images))


def test_another_network_is_refused_with_the_first_difference(tmp_path: Path) -> None:
    graph = to_onnx(torch.nn.Conv2d(3, 8, 3), {"input": torch.zeros(2, 3, 8, 8)}, ["output"], {})
    onnx.save(graph, str(tmp_path / "other.onnx"))
    with pytest.raises(BackboneError, match="1 convolutions, MobileNetV2 has 52"):
        load_backbone(tmp_path / "other.onnx")


@pytest.mark.parametrize(("name", "reason"), [("absent.onnx", "no such file"), ("weights.pkl", "expected one of")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(BackboneError, match=reason):
        load_backbone(tmp_path / name)
