"""The Loop form of the captioner graph, for CPUs: see :mod:`export.captioner_graph`."""

import onnx
from onnx import TensorProto, helper

from export.captioner_graph import STEP_RESULTS, as_model, output_values, scores_of, with_prefix
from export.trace import TracedCaptioner


def loop_form(traced: TracedCaptioner, max_words: int, *, early_exit: bool = True) -> onnx.ModelProto:
    """Join the traced graphs with a Loop.

    ``tokens`` (B, N, token_width) float32, ``token_mask`` (B, N) bool and, if the captioner needs them,
    ``token_boxes`` (B, N, 4) float32 -> ``words`` (B, k, T) int64, ``log_probabilities``
    (B, k, T), ``scores`` (B, k), ``attention`` (B, k, T, N) float32, beams best first. B and N are dynamic; T is how
    many words were decoded, ``max_words`` at most. A guided captioner also takes ``word_bias`` (B, V) float32 and
    ``word_groups`` (B, V) int32 (:class:`training.decoding.beam_search.WordGuide`) and ``every_beam`` (B,) bool, True
    for an image whose search goes on until all its beams have ended.

    Args:
        traced: from :func:`export.trace.trace_captioner`.
        max_words: the longest caption, end token included.
        early_exit: end when every image's best beam has ended, and the others where ``every_beam`` is True; without it
            T is always ``max_words``.
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
    graph = helper.make_graph(
        [*start.node, loop, *finish.node, *scores_of(finish, "last_scores")],
        "captioner", list(start.input), output_values("batch", traced.beam_size, "steps", "tokens"),
        initializer=[*start.initializer, length, *finish.initializer],
    )  # fmt: skip
    return as_model(graph)


def _loop_body(traced: TracedCaptioner, early_exit: bool) -> onnx.GraphProto:
    """The step with Loop's signature; what was computed once an image is taken from the graph around it."""
    graph = with_prefix(traced.step, "step/")
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    # Slots grow with every word, so the shapes of what is carried stay open.
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
