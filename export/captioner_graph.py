"""Both forms of the captioner graph.

The captioner graph has the captioner and the whole beam search in one ONNX graph of standard operators. The *Loop form*
(:func:`loop_form`) takes any number of images and tokens and ends as soon as every image's best beam has ended,
which is exact: scores only fall. The *static form* (:func:`static_form`) has fixed shapes and no control flow,
because TensorRT and CUDA graphs support nothing else; it decodes to the longest length. Both are joined from the graphs
of :mod:`export.trace`.
"""

import copy
import math
from collections.abc import Mapping, Sequence

import onnx
import onnx_ir as ir
from onnx import NodeProto, TensorProto, ValueInfoProto, compose, helper
from onnx_ir.passes.common import CheckerPass, RemoveUnusedNodesPass
from onnxscript import optimizer

from export.torch_to_onnx import BATCH, OPSET, SLOTS, STEPS, TOKENS, clear_metadata, shape_at
from export.trace import TracedCaptioner
from export.weights import SMALLEST, content_of, to_proto
from smart_caption_ros.captioning.bundle import LOOP_INPUTS

STEP_RESULTS = {"words": "next_words", "chosen": "chosen", "attention": "attention"}
"""Results of every step from which the captions are reconstructed, and the output of the step for each."""


def output_values(batch: int | str, beam_size: int, steps: int | str, tokens: int | str) -> list[ValueInfoProto]:
    """Return the outputs of a captioner graph."""
    return [
        helper.make_tensor_value_info("words", TensorProto.INT64, [batch, beam_size, steps]),
        helper.make_tensor_value_info("log_probabilities", TensorProto.FLOAT, [batch, beam_size, steps]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, beam_size]),
        helper.make_tensor_value_info("attention", TensorProto.FLOAT, [batch, beam_size, steps, tokens]),
    ]


def scores_of(finish: onnx.GraphProto, last_scores: str) -> list[onnx.NodeProto]:
    """Return the node that outputs the scores of the captions; none where the last graph computes them."""
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
    CheckerPass()(tidy)
    model = to_proto(tidy)
    clear_metadata(model)
    return model


def loop_form(traced: TracedCaptioner, max_words: int, *, early_exit: bool = True) -> onnx.ModelProto:
    """Join the traced graphs with a Loop.

    ``tokens`` (B, N, token_width) float32, ``token_mask`` (B, N) bool and, if the captioner needs them,
    ``token_boxes`` (B, N, 4) float32 -> ``words`` (B, k, T) int64, ``log_probabilities``
    (B, k, T), ``scores`` (B, k), ``attention`` (B, k, T, N) float32, beams best first. B and N are dynamic; T is how
    many words were decoded, ``max_words`` at most. A guided captioner also takes ``word_bias`` (B, V) float32 and
    ``word_groups`` (B, V) int32 (:class:`training.decoding.beam_search.WordGuide`) and ``every_beam`` (B,) bool, True
    for an image whose search goes on until all its beams have ended.

    Args:
        max_words: the longest caption, end token included.
        early_exit: end when the best beam of every image has ended, and all beams of images with ``every_beam``;
            False: T is always ``max_words``.
    """
    loop = helper.make_node(
        "Loop",
        ["max_words", "", *(f"first_{name}" for name in traced.carried)],
        [f"last_{name}" for name in traced.carried] + [f"step_{name}" for name in STEP_RESULTS],
        name="beam_search",
        body=_loop_body(traced, early_exit),
    )
    length = helper.make_tensor("max_words", TensorProto.INT64, [], [max_words])
    start, finish = with_prefix(traced.start, "start/"), with_prefix(traced.finish, "finish/")
    _move_weights(loop.attribute[0].g, start)
    graph = helper.make_graph(
        [*start.node, loop, *finish.node, *scores_of(finish, "last_scores")],
        "captioner", list(start.input), output_values("batch", traced.beam_size, "steps", "tokens"),
        initializer=[*start.initializer, length, *finish.initializer],
    )  # fmt: skip
    return as_model(graph)


def _move_weights(step: onnx.GraphProto, start: onnx.GraphProto) -> None:
    """Move the weights of the step to the graph around it, in place.

    Weights that the start has already are shared: words of a prompt pass the same layers as the words of a caption.
    """
    known = {content_of(tensor): tensor.name for tensor in start.initializer}
    same, kept = {}, []
    for tensor in step.initializer:
        if (content := content_of(tensor)) in known:
            same[tensor.name] = known[content]
        elif math.prod(tensor.dims) >= SMALLEST:
            start.initializer.append(tensor)
        else:
            kept.append(tensor)
    del step.initializer[:]
    step.initializer.extend(kept)
    for node in step.node:
        node.input[:] = [same.get(name, name) for name in node.input]


def _loop_body(traced: TracedCaptioner, early_exit: bool) -> onnx.GraphProto:
    """Make the body of the Loop from the step; values computed once per image are read from the outer graph."""
    graph = with_prefix(traced.step, "step/")
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    # Slots grow with every word, so the shapes of the carried tensors stay open.
    inputs = [
        helper.make_tensor_value_info("position", TensorProto.INT64, []),
        helper.make_tensor_value_info("was_going_on", TensorProto.BOOL, []),
        *(helper.make_tensor_value_info(name, types[name], None) for name in traced.carried),
    ]
    going_on = "going_on" if early_exit else "always_going_on"
    nodes = [*graph.node, helper.make_node("Identity", ["next_words"], ["scanned_words"])]
    if not early_exit:
        nodes.append(helper.make_node("Identity", ["was_going_on"], [going_on]))
    types |= {"scanned_words": types["words"], going_on: TensorProto.BOOL}
    outputs = [going_on, *(f"next_{name}" for name in traced.carried), "scanned_words", "chosen", "attention"]
    return helper.make_graph(
        nodes, "beam_step", inputs,
        [helper.make_tensor_value_info(name, types[name], None) for name in outputs],
        initializer=list(graph.initializer),
    )  # fmt: skip


def static_form(traced: TracedCaptioner, max_words: int, tokens: int, batch: int = 1) -> onnx.ModelProto:
    """Join the traced graphs with the search unrolled and all shapes fixed.

    Inputs and outputs are those of :func:`loop_form`, without ``every_beam``, with B = ``batch``, N =
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
        *(
            helper.make_node("Identity", [state[value.name.removeprefix("last_")]], [value.name])
            for value in last.input
            if value.name.startswith("last_")
        ),
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
    """Copy a graph with fixed input shapes, and fold all nodes that depend on the shapes alone."""
    fixed = copy.deepcopy(model)
    for value in fixed.graph.input:
        kind = value.type.tensor_type.elem_type
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, shapes[value.name]))
    # Shapes that were inferred from the dynamic sizes.
    del fixed.graph.value_info[:]
    for value in fixed.graph.output:
        value.type.tensor_type.ClearField("shape")
    folded = ir.from_proto(onnx.shape_inference.infer_shapes(fixed, data_prop=True))
    optimizer.optimize_ir(folded, onnx_shape_inference=True)
    computed = to_proto(folded)
    del computed.graph.value_info[:]
    outputs = {value.name for value in computed.graph.output}
    for tensor in computed.graph.initializer:
        if tensor.name in outputs:  # a constant by now; an initializer cannot keep its name when graphs are joined
            computed.graph.node.append(helper.make_node("Identity", [f"{tensor.name}/value"], [tensor.name]))
            tensor.name += "/value"
    return computed


def _output_shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """Infer the shapes of a graph's outputs from those of its inputs."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    return {
        value.name: [axis.dim_value for axis in value.type.tensor_type.shape.dim] for value in inferred.graph.output
    }


def _copied_nodes(graph: onnx.GraphProto, prefix: str, given: Mapping[str, str]) -> list[NodeProto]:
    """Copy the nodes of a step, with ``given`` as its inputs; its initializers are those of all other steps."""
    names = {**given, **{tensor.name: f"step/{tensor.name}" for tensor in graph.initializer}, "": ""}
    copies = []
    for node in graph.node:
        copied = copy.deepcopy(node)
        for field in (copied.input, copied.output):
            for index, name in enumerate(field):
                field[index] = names.get(name, f"{prefix}{name}")
        copied.name = f"{prefix}{node.name}"
        copies.append(copied)
    return copies


def _renamed(tensor: TensorProto, prefix: str) -> TensorProto:
    renamed = copy.deepcopy(tensor)
    renamed.name = f"{prefix}{tensor.name}"
    return renamed


def _integers(name: str, values: Sequence[int]) -> TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
