"""No exported graph has metadata: PyTorch's exporter writes stack traces with paths of the machine."""

import onnx
from onnx import TensorProto, helper

from export.torch_to_onnx import clear_metadata
from smart_caption_ros.captioning.bundle import default_bundle_path


def assert_no_metadata(model):
    assert not clear_metadata(model)
    text = model.SerializeToString()
    assert b"site-packages" not in text
    assert b'.py"' not in text


def graphs_of(folder):
    return [onnx.load(str(path)) for path in sorted(folder.glob("*.onnx"))]


def test_the_default_bundle_has_none():
    graphs = graphs_of(default_bundle_path())
    assert len(graphs) == 3
    for graph in graphs:
        assert_no_metadata(graph)


def test_an_exported_bundle_has_none(exported_bundle):
    for graph in graphs_of(exported_bundle):
        assert_no_metadata(graph)


def graph_with_metadata():
    body = helper.make_graph(
        [helper.make_node("Identity", ["going_on"], ["still_going_on"], doc_string="body")], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("going_on", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("still_going_on", TensorProto.BOOL, [])], doc_string="loop",
    )  # fmt: skip
    node = helper.make_node("Loop", ["count", ""], [], body=body)
    node.metadata_props.add(key="stack_trace", value='File "/home/somebody/model.py"')
    body.node[0].metadata_props.add(key="stack_trace", value='File "/home/somebody/model.py"')
    count = helper.make_tensor("count", TensorProto.INT64, [], [3])
    count.doc_string = "three"
    graph = helper.make_graph([node], "graph", [], [], initializer=[count], doc_string="graph")
    model = helper.make_model(graph, doc_string="model", opset_imports=[helper.make_opsetid("", 18)])
    model.metadata_props.add(key="path", value="/home/somebody")
    return model


def test_it_is_cleared_in_the_bodies_of_loops_as_well():
    model = graph_with_metadata()
    assert clear_metadata(model)
    text = model.SerializeToString()
    assert b"somebody" not in text
    assert not any(word in text for word in (b"three", b"model.py", b"doc"))
    assert model.graph.node[0].op_type == "Loop"
