"""The static form of the captioner graph, for TensorRT and CUDA graphs: see :mod:`export.captioner_graph`."""

from collections.abc import Mapping, Sequence

import onnx
import onnx_ir as ir
from onnx import NodeProto, TensorProto, helper
from onnxscript import optimizer

from export.captioner_graph import STEP_RESULTS, as_model, output_values, scores_of, with_prefix
from export.shapes import BATCH, SLOTS, STEPS, TOKENS, shape_at
from export.trace import PAST, TracedCaptioner
from smart_caption_ros.captioning.bundle import LOOP_INPUTS


def static_form(traced: TracedCaptioner, max_words: int, tokens: int, batch: int = 1) -> onnx.ModelProto:
    """Join the traced graphs with the search unrolled and all shapes fixed.

    Inputs and outputs are those of :func:`export.loop_form.loop_form`, without ``every_beam``, with B = ``batch``, N =
    ``tokens`` and T = ``max_words``, padding after the end. Every step has the slots of all words of all beams: it
    appends its own at the back and drops as many empty ones at the front, so all steps are the same graph.
    """
    beam_size = traced.beam_size
    sizes = {BATCH: batch, TOKENS: tokens, SLOTS: (max_words - 1) * beam_size, STEPS: max_words}
    shapes = {name: shape_at(shape, sizes) for name, shape in traced.shapes.items()}
    start = _with_fixed_sizes(traced.start, shapes)
    step = _with_fixed_sizes(traced.step, {**_output_shapes(start), **shapes})
    finish = _with_fixed_sizes(traced.finish, shapes)
    first, last = with_prefix(start, "start/"), with_prefix(finish, "finish/")
    initializers = [
        *first.initializer, *last.initializer, *(_renamed(tensor, "step/") for tensor in step.graph.initializer),
        _integers("slots/front", [beam_size]), _integers("slots/end", [max_words * beam_size]),
        *(_integers(f"slots/axis_{axis}", [axis]) for axis in sorted(set(traced.slot_axes.values()))),
    ]  # fmt: skip
    nodes = list(first.node)
    types = {value.name: value.type.tensor_type.elem_type for value in traced.step.graph.input}
    for name in traced.slot_axes:
        shape = _integers(f"empty_{name}/shape", shapes[name])
        zero = helper.make_tensor("zero", types[name], [1], [0])
        initializers.append(shape)
        nodes.append(helper.make_node("ConstantOfShape", [shape.name], [f"empty_{name}"], value=zero))
    state = {name: f"{'empty' if name in traced.slot_axes else 'first'}_{name}" for name in traced.carried}
    for number in range(max_words):
        prefix = f"step_{number}/"
        position = helper.make_tensor(f"{prefix}position", TensorProto.INT64, [], [number])
        initializers.append(position)
        image = {name: name for name in traced.encoded}
        nodes += _copied_nodes(step.graph, prefix, {**image, **state, "position": position.name})
        state = {name: f"{prefix}next_{name}" for name in traced.carried}
        if number + 1 == max_words:
            break
        for name, axis in traced.slot_axes.items():
            kept = f"{prefix}kept_{name}"
            inputs = [state[name], "slots/front", "slots/end", f"slots/axis_{axis}"]
            nodes.append(helper.make_node("Slice", inputs, [kept]))
            state[name] = kept
    for result, output in STEP_RESULTS.items():
        parts = [f"step_{number}/{output}" for number in range(max_words)]
        shape = _integers(f"step_{result}/shape", shapes[f"step_{result}"])
        initializers.append(shape)
        nodes.append(helper.make_node("Concat", parts, [f"step_{result}/rows"], axis=0))
        nodes.append(helper.make_node("Reshape", [f"step_{result}/rows", shape.name], [f"step_{result}"]))
    nodes += [
        helper.make_node("Identity", [state[PAST]], [f"last_{PAST}"]),
        helper.make_node("Identity", [state["scores"]], ["last_scores"]),
        *last.node,
        *scores_of(last, state["scores"]),
    ]
    taken = [value for value in first.input if value.name not in LOOP_INPUTS]
    graph = helper.make_graph(
        nodes, "captioner_static", taken, output_values(batch, beam_size, max_words, tokens),
        initializer=initializers,
    )  # fmt: skip
    return as_model(graph)


def _with_fixed_sizes(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> onnx.ModelProto:
    """Copy a graph with its inputs in fixed shapes, and everything that follows from their sizes computed."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in fixed.graph.input:
        kind = value.type.tensor_type.elem_type
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, shapes[value.name]))
    # They hold what is known of the dynamic sizes alone.
    del fixed.graph.value_info[:]
    for value in fixed.graph.output:
        value.type.tensor_type.ClearField("shape")
    folded = ir.from_proto(onnx.shape_inference.infer_shapes(fixed, data_prop=True))
    optimizer.optimize_ir(folded, onnx_shape_inference=True)
    computed = ir.to_proto(folded)
    del computed.graph.value_info[:]
    outputs = {value.name for value in computed.graph.output}
    for tensor in computed.graph.initializer:
        if tensor.name in outputs:  # it depends on nothing any more; an initializer cannot keep its name when joined
            computed.graph.node.append(helper.make_node("Identity", [f"{tensor.name}/value"], [tensor.name]))
            tensor.name += "/value"
    return computed


def _output_shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """The shapes of a graph's outputs, which follow from those of its inputs."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    return {
        value.name: [axis.dim_value for axis in value.type.tensor_type.shape.dim] for value in inferred.graph.output
    }


def _copied_nodes(graph: onnx.GraphProto, prefix: str, given: Mapping[str, str]) -> list[NodeProto]:
    """Copy the nodes of a step, with ``given`` as its inputs; its initializers are those of all other steps."""
    names = {**given, **{tensor.name: f"step/{tensor.name}" for tensor in graph.initializer}, "": ""}
    copies = []
    for node in graph.node:
        copy = NodeProto()
        copy.CopyFrom(node)
        for field in (copy.input, copy.output):
            for index, name in enumerate(field):
                field[index] = names.get(name, f"{prefix}{name}")
        copy.name = f"{prefix}{node.name}"
        copies.append(copy)
    return copies


def _renamed(tensor: TensorProto, prefix: str) -> TensorProto:
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.name = f"{prefix}{tensor.name}"
    return copy


def _integers(name: str, values: Sequence[int]) -> TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
