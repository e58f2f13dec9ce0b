"""The captioner graph: encoder and whole beam search in one ONNX graph of standard operators, in two forms.

The *Loop form* takes any batch and any number of tokens and ends as soon as every image's best beam has ended, which
is exact: scores only fall. The *static form* has fixed shapes throughout and no control flow, for TensorRT and CUDA
graphs, which can have neither; it decodes to the longest length. Both are joined from the same pieces.
"""

import math
from collections.abc import Mapping

import onnx
import onnx_ir as ir
from onnx import NodeProto, TensorProto, ValueInfoProto, compose, helper
from onnx_ir.passes.common import ClearMetadataAndDocStringPass, RemoveUnusedNodesPass
from onnxscript import optimizer

from export.torch_to_onnx import OPSET
from export.trace import Pieces

_OF_EACH_STEP = ("words", "chosen", "attention")
_SLOT_AXIS = 2


def loop_form(pieces: Pieces, max_words: int, *, early_exit: bool = True) -> onnx.ModelProto:
    """Beam search as a Loop.

    ``tokens`` (B, N, token_width) float32 and ``token_mask`` (B, N) bool -> ``words`` (B, k, T) int64,
    ``log_probabilities`` (B, k, T), ``scores`` (B, k), ``attention`` (B, k, T, N) float32, beams best first. B and N
    are dynamic; T is how many words were decoded, ``max_words`` at most.

    Args:
        max_words: the longest caption, end token included.
        early_exit: end when every image's best beam has ended; without it T is always ``max_words``.
    """
    loop = helper.make_node(
        "Loop",
        ["max_words", "", *(f"first_{name}" for name in pieces.carried)],
        [f"last_{name}" for name in pieces.carried] + [f"step_{name}" for name in _OF_EACH_STEP],
        name="beam_search",
        body=_loop_body(pieces, early_exit),
    )
    length = helper.make_tensor("max_words", TensorProto.INT64, [], [max_words])
    start, finish = _with_prefix(pieces.start, "start/"), _with_prefix(pieces.finish, "finish/")
    graph = helper.make_graph(
        [*start.node, loop, *finish.node, helper.make_node("Identity", ["last_scores"], ["scores"])],
        "captioner", list(start.input), _outputs("batch", pieces.beam_size, "steps", "tokens"),
        initializer=[*start.initializer, length, *finish.initializer],
    )  # fmt: skip
    return _as_model(graph)


def static_form(pieces: Pieces, max_words: int, tokens: int, batch: int = 1) -> onnx.ModelProto:
    """Beam search unrolled, with fixed shapes throughout.

    Inputs and outputs are those of :func:`loop_form` with B = ``batch``, N = ``tokens`` and T = ``max_words``, padding
    after the end. From the first step on, the decoder's cache has a slot for every word that every beam will have:
    a step appends its own at the back and drops as many empty ones at the front, so all steps are the same graph.
    """
    beam_size = pieces.beam_size
    sizes = {"batch": batch, "tokens": tokens, "slots": (max_words - 1) * beam_size, "steps": max_words}
    start, step, finish = (_with_fixed_sizes(piece, sizes) for piece in (pieces.start, pieces.step, pieces.finish))
    first, last = _with_prefix(start, "start/"), _with_prefix(finish, "finish/")
    cache = [name for name in pieces.carried if _has_slots(pieces.step, name)]
    initializers = [
        *first.initializer, *last.initializer, *(_renamed(tensor, "step/") for tensor in step.graph.initializer),
        _integers("slots/front", [beam_size]), _integers("slots/end", [max_words * beam_size]),
        _integers("slots/axis", [_SLOT_AXIS]),
    ]  # fmt: skip
    nodes = list(first.node)
    for name in cache:
        shape, empty = _empty(step, name)
        initializers.append(shape)
        nodes.append(empty)
    state = {name: f"empty_{name}" if name in cache else f"first_{name}" for name in pieces.carried}
    for number in range(max_words):
        prefix = f"step_{number}/"
        position = helper.make_tensor(f"{prefix}position", TensorProto.INT64, [], [number])
        initializers.append(position)
        image = {name: name for name in pieces.of_image}
        nodes += _copied_nodes(step.graph, prefix, {**image, **state, "position": position.name})
        state = {name: f"{prefix}next_{name}" for name in pieces.carried}
        if number + 1 == max_words:
            break
        for name in cache:
            kept = f"{prefix}kept_{name}"
            nodes.append(helper.make_node("Slice", [state[name], "slots/front", "slots/end", "slots/axis"], [kept]))
            state[name] = kept
    for kind in _OF_EACH_STEP:
        parts = [f"step_{number}/{_output_of_step(kind)}" for number in range(max_words)]
        shape = _integers(f"step_{kind}/shape", _sizes_of(finish.graph.input, f"step_{kind}"))
        initializers.append(shape)
        nodes.append(helper.make_node("Concat", parts, [f"step_{kind}/rows"], axis=0))
        nodes.append(helper.make_node("Reshape", [f"step_{kind}/rows", shape.name], [f"step_{kind}"]))
    nodes += [
        helper.make_node("Identity", [state["ancestry"]], ["last_ancestry"]),
        helper.make_node("Identity", [state["scores"]], ["last_scores"]),
        *last.node,
        helper.make_node("Identity", [state["scores"]], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes, "captioner_static", list(first.input), _outputs(batch, beam_size, max_words, tokens),
        initializer=initializers,
    )  # fmt: skip
    return _as_model(graph)


def _as_model(graph: onnx.GraphProto) -> onnx.ModelProto:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    tidy = ir.from_proto(model)
    RemoveUnusedNodesPass()(tidy)
    ClearMetadataAndDocStringPass()(tidy)  # where in torch each node came from: half of the static form's size
    model = ir.to_proto(tidy)
    onnx.checker.check_model(model)
    return model


def _outputs(batch: int | str, beam_size: int, steps: int | str, tokens: int | str) -> list[ValueInfoProto]:
    return [
        helper.make_tensor_value_info("words", TensorProto.INT64, [batch, beam_size, steps]),
        helper.make_tensor_value_info("log_probabilities", TensorProto.FLOAT, [batch, beam_size, steps]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, beam_size]),
        helper.make_tensor_value_info("attention", TensorProto.FLOAT, [batch, beam_size, steps, tokens]),
    ]


def _with_prefix(piece: onnx.ModelProto, prefix: str) -> onnx.GraphProto:
    """The piece with its inner names, but not its inputs and outputs, set apart from those of other pieces."""
    return compose.add_prefix_graph(piece.graph, prefix, rename_inputs=False, rename_outputs=False)


def _output_of_step(kind: str) -> str:
    return "next_words" if kind == "words" else kind


# --- the Loop form -----------------------------------------------------------------------------------------


def _loop_body(pieces: Pieces, early_exit: bool) -> onnx.GraphProto:
    """The step with Loop's signature; what belongs to the image is taken from the graph around it."""
    graph = _with_prefix(pieces.step, "step/")
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    # Caches grow by k slots a word: shapes of what is carried are left open.
    inputs = [
        helper.make_tensor_value_info("position", TensorProto.INT64, []),
        helper.make_tensor_value_info("was_going_on", TensorProto.BOOL, []),
        *(helper.make_tensor_value_info(name, types[name], None) for name in pieces.carried),
    ]
    going_on = "going_on" if early_exit else "always_going_on"
    nodes = [*graph.node, helper.make_node("Identity", ["next_words"], ["scanned_words"])]
    if not early_exit:
        nodes.append(helper.make_node("Identity", ["was_going_on"], [going_on]))
    types |= {"scanned_words": types["words"], going_on: TensorProto.BOOL}
    outputs = [going_on, *(f"next_{name}" for name in pieces.carried), "scanned_words", "chosen", "attention"]
    return helper.make_graph(
        nodes, "beam_step", inputs,
        [helper.make_tensor_value_info(name, types[name], None) for name in outputs],
        initializer=list(graph.initializer),
    )  # fmt: skip


# --- the static form ---------------------------------------------------------------------------------------


def _with_fixed_sizes(piece: onnx.ModelProto, sizes: Mapping[str, int]) -> onnx.ModelProto:
    """The piece with its dynamic axes fixed, and everything that follows from their sizes computed."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(piece)
    for value in fixed.graph.input:
        for axis in value.type.tensor_type.shape.dim:
            if axis.HasField("dim_param"):  # the name of an axis, or a multiple of one such as 5*steps
                factors = axis.dim_param.split("*")
                axis.dim_value = math.prod(int(name) if name.isdigit() else sizes[name] for name in factors)
    # Only what is known of the dynamic sizes is in there.
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


def _sizes_of(values: "list[ValueInfoProto]", name: str) -> list[int]:
    (value,) = (value for value in values if value.name == name)
    return [axis.dim_value for axis in value.type.tensor_type.shape.dim]


def _has_slots(step: onnx.ModelProto, name: str) -> bool:
    (value,) = (value for value in step.graph.input if value.name == name)
    axes = value.type.tensor_type.shape.dim
    return len(axes) > _SLOT_AXIS and axes[_SLOT_AXIS].dim_param == "slots"


def _empty(step: onnx.ModelProto, name: str) -> tuple[TensorProto, NodeProto]:
    """Shape and maker of a cache that nothing was put in."""
    (value,) = (value for value in step.graph.input if value.name == name)
    shape = _integers(f"empty_{name}/shape", _sizes_of(step.graph.input, name))
    zero = helper.make_tensor("zero", value.type.tensor_type.elem_type, [1], [0])
    return shape, helper.make_node("ConstantOfShape", [shape.name], [f"empty_{name}"], value=zero)


def _copied_nodes(graph: onnx.GraphProto, prefix: str, given: Mapping[str, str]) -> list[NodeProto]:
    """The nodes of a step, with ``given`` as its inputs, sharing its initializers with all other steps."""
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


def _integers(name: str, values: list[int]) -> TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
