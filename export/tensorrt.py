"""Compare a graph with what TensorRT supports, by the published list of operators (``tensorrt_operators.json``)."""

import json
from pathlib import Path

import onnx
from onnx import NodeProto, TensorProto, defs

OPERATORS_FILE = Path(__file__).with_name("tensorrt_operators.json")
"""Table of docs/operators.md of onnx-tensorrt, at the commit that the file names."""
_TYPES = {
    TensorProto.FLOAT: "FP32", TensorProto.FLOAT16: "FP16", TensorProto.BFLOAT16: "BF16", TensorProto.INT32: "INT32",
    TensorProto.INT64: "INT64", TensorProto.BOOL: "BOOL", TensorProto.UINT8: "UINT8", TensorProto.INT8: "INT8",
}  # fmt: skip
_ONNX = ("", "ai.onnx")
_CONTROL_FLOW = ("If", "Loop", "Scan")
_DYNAMIC = ("NonZero", "ScatterND", "Shape", "Size", "Unique")


def unsupported_by_tensorrt(model: onnx.ModelProto, *, static: bool = True) -> list[str]:
    """Find what keeps TensorRT from running a graph.
    ``static``: the graph must also have fixed shapes, and no operator that computes or depends on a shape.

    Returns:
        A sentence for each operator, type or shape; empty when there is none. An operator may be listed as supported
        but not for a type, be listed as not supported, or be absent from the list.
    """
    support = json.loads(OPERATORS_FILE.read_text(encoding="utf-8"))
    found: dict[str, None] = {}  # a set in the order of finding
    lowest, highest = support["opsets"]
    for opset in model.opset_import:
        if opset.domain in _ONNX and not lowest <= opset.version <= highest:
            found[f"opset {opset.version} is not among {lowest} to {highest}"] = None
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    graph = inferred.graph
    constants = {tensor.name for tensor in graph.initializer}
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    shapes: dict[str, list[int]] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        types[value.name] = value.type.tensor_type.elem_type
        shapes[value.name] = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
    for node in graph.node:
        operator = node.op_type
        listed = support["operators"].get(operator)
        if static and operator in (*_CONTROL_FLOW, *_DYNAMIC):
            found[f"{operator} ({node.name}) has no place in a static graph"] = None
        elif node.domain not in _ONNX:
            found[f"{operator} ({node.name}) of {node.domain} is not an ONNX operator"] = None
        elif listed is None:
            version = support["version"]
            found[f"{operator} ({node.name}) is not in the list of {version}, so its support is unknown"] = None
        elif not listed["supported"]:
            found[f"{operator} ({node.name}) is listed as not supported by {support['version']}"] = None
        else:
            # The list gives the types of the inputs, and for these two operators those of the output as well.
            for name in (*_data_inputs(node), *(node.output if operator in ("Cast", "ConstantOfShape") else ())):
                if name and (kind := _TYPES.get(types.get(name, 0), "unknown type")) not in listed["types"]:
                    found[f"{operator} is listed as supported, but not for {kind} ({name})"] = None
        if operator == "TopK" and node.input[1] not in constants:
            found[f"TopK ({node.name}) needs a constant k"] = None
        if static:
            for name in node.output:
                if name and 0 in shapes.get(name, [0]) and operator not in _CONTROL_FLOW:
                    found[f"{operator} makes {name} of a shape that is not fixed"] = None
    return list(found)


def _data_inputs(node: NodeProto) -> list[str]:
    """Return the inputs of a node that carry data: not axes, sizes and indices.

    Those are inputs after the first that ONNX allows to be integers alone; the published list leaves out their types.
    """
    schema = defs.get_schema(node.op_type)
    allowed = {kind.type_param_str: set(kind.allowed_type_strs) for kind in schema.type_constraints}
    data = []
    for index, name in enumerate(node.input):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]  # the last one may be variadic
        if index == 0 or allowed.get(formal.type_str, {formal.type_str}) - {"tensor(int32)", "tensor(int64)"}:
            data.append(name)
    return data
