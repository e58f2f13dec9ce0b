"""Squeeze undoes Unsqueeze: a captioner decodes T words and the search gives it one, so an axis comes and goes."""

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass


def cancel_squeezes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Remove every Squeeze of the very axes that an Unsqueeze before it has added."""
    converted = ir.from_proto(model)
    for node in list(converted.graph):
        before = node.inputs[0].producer() if node.op_type == "Squeeze" and node.inputs[0] is not None else None
        if before is None or before.op_type != "Unsqueeze" or _axes(node) is None or _axes(node) != _axes(before):
            continue
        (value,), source = node.outputs, before.inputs[0]
        if source is not None and not value.is_graph_output():
            ir.convenience.replace_all_uses_with(value, source)
    RemoveUnusedNodesPass()(converted)
    return ir.to_proto(converted)


def _axes(node: ir.Node) -> list[int] | None:
    axes = node.inputs[1].const_value if len(node.inputs) > 1 and node.inputs[1] is not None else None
    return None if axes is None else axes.numpy().tolist()
