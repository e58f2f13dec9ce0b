"""A captioner graph receives the inputs that the manifest names, and is refused where it has others."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from smart_caption_ros.captioning import Bundle, BundleError, Captioner
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, STATIC_GRAPH, VISUAL_INPUTS
from tests.engines.small_graphs import changed_manifest, list_file

SHAPES = {
    "tokens": (TensorProto.FLOAT, ["batch", "n", "width"]),
    "token_mask": (TensorProto.BOOL, ["batch", "n"]),
    "token_boxes": (TensorProto.FLOAT, ["batch", "n", 4]),
    "image_size": (TensorProto.FLOAT, ["batch", 2]),
}


def captioner_graph():
    """Make a captioner of two words whose log probabilities are the image size, and its attention the boxes' areas."""
    nodes = [
        helper.make_node("Constant", [], ["axes"], value_ints=[1]),
        helper.make_node("Constant", [], ["last"], value_ints=[2]),
        helper.make_node("Unsqueeze", ["image_size", "axes"], ["log_probabilities"]),
        helper.make_node("Split", ["token_boxes"], ["start", "end"], axis=2, num_outputs=2),
        helper.make_node("Sub", ["end", "start"], ["sides"]),
        helper.make_node("ReduceProd", ["sides", "last"], ["weights"], keepdims=0),
        helper.make_node("Unsqueeze", ["weights", "axes"], ["row"]),
        helper.make_node("Concat", ["row", "row"], ["rows"], axis=1),
        helper.make_node("Unsqueeze", ["rows", "axes"], ["attention"]),
        helper.make_node("ReduceSum", ["log_probabilities", "last"], ["scores"], keepdims=0),
        helper.make_node("Cast", ["log_probabilities"], ["integers"], to=TensorProto.INT64),
        helper.make_node("Constant", [], ["four"], value_int=4),
        helper.make_node("Sub", ["integers", "integers"], ["zeros"]),
        helper.make_node("Add", ["zeros", "four"], ["words"]),
    ]
    outputs = {
        "words": (TensorProto.INT64, ["batch", 1, 2]), "log_probabilities": (TensorProto.FLOAT, ["batch", 1, 2]),
        "scores": (TensorProto.FLOAT, ["batch", 1]), "attention": (TensorProto.FLOAT, ["batch", 1, 2, "n"]),
    }  # fmt: skip
    inputs = [helper.make_tensor_value_info(name, *SHAPES[name]) for name in VISUAL_INPUTS]
    outputs = [helper.make_tensor_value_info(name, *facts) for name, facts in outputs.items()]
    graph = helper.make_graph(nodes, "captioner", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def with_captioner(bundle):
    """The bundle with the captioner above in its place."""
    onnx.save(captioner_graph(), str(bundle / CAPTIONER_GRAPH))
    list_file(bundle, CAPTIONER_GRAPH)
    return with_inputs(bundle, list(VISUAL_INPUTS))


def with_inputs(bundle, named):
    """The bundle with other ``captioner_inputs`` in its manifest."""
    with changed_manifest(bundle) as manifest:
        manifest["files"].pop(STATIC_GRAPH, None)
        manifest["captioner_inputs"] = named
    return bundle


def load(bundle):
    return Captioner.from_bundle(bundle, engine="onnxruntime-cpu", threads=1)


@pytest.mark.parametrize("width", [640, 37])
def test_boxes_of_the_grid_and_the_size_of_the_frame_reach_the_graph(bundle_copy, width):
    captioner = load(with_captioner(bundle_copy))
    frame = np.zeros((480, width, 3), np.uint8)
    caption = captioner.caption(frame)
    assert [word.log_probability for word in caption.words] == [width, 480]
    assert caption.score == width + 480
    found = captioner.decode(captioner.visual_tokens(frame), image_size=np.array([[width, 480]], np.float32))
    np.testing.assert_allclose(found["attention"], 1 / 49, rtol=1e-5)
    assert found["attention"].shape == (1, 1, 2, 49)
    found = captioner.decode(captioner.visual_tokens(frame))
    assert found["log_probabilities"].tolist() == [[[224.0, 224.0]]], "the size of the vision graph's input by default"


def test_every_frame_of_a_batch_has_its_size(bundle_copy, monkeypatch):
    captioner = load(with_captioner(bundle_copy))
    found = []
    decode = captioner.decode

    def recorded(tokens, **options):
        found.append(decode(tokens, **options))
        return found[-1]

    monkeypatch.setattr(captioner, "decode", recorded)
    captioner.caption_batch([np.zeros((10, 20, 3), np.uint8), np.zeros((30, 40, 3), np.uint8)])
    assert found[0]["log_probabilities"].tolist() == [[[20, 10]], [[40, 30]]]


@pytest.mark.parametrize("named", [list(VISUAL_INPUTS), ["tokens", "token_boxes"]])
def test_a_graph_with_other_inputs_than_the_manifest_names_is_refused(bundle_copy, named):
    words = rf"captioner\.onnx maps tokens, token_mask to .* instead of {', '.join(named)} to"
    with pytest.raises(BundleError, match=words):
        load(with_inputs(bundle_copy, named))


@pytest.mark.parametrize(
    "named", ["tokens", [], ["token_mask"], ["tokens", "tokens"], ["tokens", "depth"], ["tokens", 3], {"tokens": 1}]
)
def test_a_manifest_that_names_other_inputs_is_refused(bundle_copy, named):
    with_inputs(bundle_copy, named)
    with pytest.raises(BundleError, match=r"manifest\.json: captioner_inputs must be a list with tokens"):
        Bundle.load(bundle_copy)
