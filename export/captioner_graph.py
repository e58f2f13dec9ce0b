"""What both forms of the captioner graph share.

The captioner graph has the captioner and the whole beam search in one ONNX graph of standard operators. The *Loop form*
(:mod:`export.loop_form`) takes any number of images and tokens and ends as soon as every image's best beam has ended,
which is exact: scores only fall. The *static form* (:mod:`export.static_form`) has fixed shapes and no control flow,
because TensorRT and CUDA graphs support nothing else; it decodes to the longest length. Both are joined from the graphs
of :mod:`export.trace`.
"""

import onnx
import onnx_ir as ir
from onnx import TensorProto, ValueInfoProto, compose, helper
from onnx_ir.passes.common import RemoveUnusedNodesPass

from export.metadata import clear_metadata
from export.torch_to_onnx import OPSET

STEP_RESULTS = {"words": "next_words", "chosen": "chosen", "attention": "attention"}
"""What every step gives to the reconstruction of the captions, and the step's output that it is."""


def output_values(batch: int | str, beam_size: int, steps: int | str, tokens: int | str) -> list[ValueInfoProto]:
    """Return the outputs of a captioner graph."""
    return [
        helper.make_tensor_value_info("words", TensorProto.INT64, [batch, beam_size, steps]),
        helper.make_tensor_value_info("log_probabilities", TensorProto.FLOAT, [batch, beam_size, steps]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, beam_size]),
        helper.make_tensor_value_info("attention", TensorProto.FLOAT, [batch, beam_size, steps, tokens]),
    ]


def scores_of(finish: onnx.GraphProto, last_scores: str) -> list[onnx.NodeProto]:
    """Return the node that gives the scores of the captions, unless the last graph computes them."""
    computed = any(value.name == "scores" for value in finish.output)
    return [] if computed else [helper.make_node("Identity", [last_scores], ["scores"])]


def with_prefix(model: onnx.ModelProto, prefix: str) -> onnx.GraphProto:
    """Copy a graph with ``prefix`` before its inner names, but not before those of its inputs and outputs."""
    return compose.add_prefix_graph(model.graph, prefix, rename_inputs=False, rename_outputs=False)


def as_model(graph: onnx.GraphProto) -> onnx.ModelProto:
    """Make a checked model of a joined graph, without unused nodes and metadata.

    Raises:
        onnx.checker.ValidationError: the graph is invalid.
    """
    tidy = ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10))
    RemoveUnusedNodesPass()(tidy)
    model = ir.to_proto(tidy)
    clear_metadata(model)
    onnx.checker.check_model(model)
    return model
