"""The captioner graph: encoder and whole beam search in one ONNX graph of standard operators.

Three pieces are exported from torch and joined: ``start`` (once an image), the body of a Loop (once a word, for all
beams) and ``finish`` (once an image). The loop ends as soon as every image's best beam has ended, which is exact:
scores only fall. A model is asked for ``encode`` and ``step``, nothing more.
"""

from collections.abc import Iterable

import onnx
import torch
from onnx import TensorProto, compose, helper
from torch import Tensor, nn
from torch.export import Dim

from export.torch_to_onnx import OPSET, to_onnx
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.decode import NEVER, read_history, select
from training.models.smart import DecoderState, Encoded, Smart


class _Start(nn.Module):
    """Encode the image; the state of a search that has not begun."""

    words: Tensor
    scores: Tensor
    nothing: Tensor

    def __init__(self, model: Smart, beam_size: int) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("words", torch.full((1, beam_size), Vocabulary.begin_id))
        self.register_buffer("scores", torch.where(torch.arange(beam_size) == 0, 0.0, NEVER)[None])
        self.register_buffer("nothing", torch.zeros(1, beam_size, dtype=torch.bool))

    def forward(self, tokens: Tensor, token_mask: Tensor) -> tuple[Tensor, ...]:
        batch = tokens.shape[0]
        encoded = self.model.encode(tokens, token_mask)
        state = self.model.initial_state(encoded)
        mask = encoded.mask
        assert mask is not None
        ended = self.nothing.repeat(batch, 1)
        return (
            self.words.repeat(batch, 1), self.scores.repeat(batch, 1), ended, ended[..., None][:, :, :0],
            *state.keys, *state.values, mask, *encoded.keys, *encoded.values,
        )  # fmt: skip


class _Body(nn.Module):
    """One word: the model's step, the k best continuations, the books."""

    never_chosen: Tensor
    own: Tensor

    def __init__(self, model: Smart, beam_size: int) -> None:
        super().__init__()
        self.model = model
        never = torch.zeros(model.config.vocabulary_size)
        never[[Vocabulary.padding_id, Vocabulary.begin_id, Vocabulary.unknown_id]] = NEVER
        self.register_buffer("never_chosen", never)
        self.register_buffer("own", torch.eye(beam_size, dtype=torch.bool)[None])

    def forward(
        self, position: Tensor, words: Tensor, scores: Tensor, ended: Tensor, ancestry: Tensor, image_mask: Tensor,
        **kept: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        layers = range(len(self.model.decoder_layers()))
        word_keys, word_values, image_keys, image_values = (
            [kept[f"{kind}_{layer}"] for layer in layers] for kind in ("word_keys", "word_values", *_IMAGE)
        )
        ancestry = torch.cat([ancestry, self.own.expand(words.shape[0], -1, -1)], dim=2)
        logits, attention, state = self.model.step(
            words, position, ancestry, DecoderState(word_keys, word_values),
            Encoded(image_keys, image_values, image_mask),
        )  # fmt: skip
        words, parents, chosen, scores, ended = select(
            logits + self.never_chosen, scores, ended, Vocabulary.end_id, Vocabulary.padding_id
        )
        ancestry = ancestry.gather(1, parents[..., None].expand_as(ancestry))
        going_on = torch.logical_not(ended[:, 0].all())
        return going_on, words, scores, ended, ancestry, *state.keys, *state.values, chosen, attention


class _Finish(nn.Module):
    """Read the captions off the books."""

    own: Tensor

    def __init__(self, beam_size: int) -> None:
        super().__init__()
        self.register_buffer("own", torch.eye(beam_size, dtype=torch.bool)[None])

    def forward(
        self, step_words: Tensor, step_chosen: Tensor, step_attention: Tensor, last_ancestry: Tensor,
        last_scores: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        ancestry = torch.cat([last_ancestry, self.own.expand(last_scores.shape[0], -1, -1)], dim=2)
        found = read_history(step_words, step_chosen, step_attention, ancestry, last_scores)
        return found.words, found.log_probabilities, found.attention


_CARRIED = ("words", "scores", "ended", "ancestry")
_IMAGE = ("image_keys", "image_values")


def _names(kinds: Iterable[str], layers: int) -> list[str]:
    return [f"{kind}_{layer}" for kind in kinds for layer in range(layers)]


def export_captioner(model: Smart, beam_size: int, max_words: int) -> onnx.ModelProto:
    """Beam search as one graph.

    ``tokens`` (B, N, token_width) float32 and ``token_mask`` (B, N) bool -> ``words`` (B, k, T) int64,
    ``log_probabilities`` (B, k, T), ``scores`` (B, k), ``attention`` (B, k, T, N) float32, beams best first. B and N
    are dynamic; T is how many words were decoded, ``max_words`` at most.
    """
    layers = len(model.decoder_layers())
    carried = [*_CARRIED, *_names(("word_keys", "word_values"), layers)]
    of_image = ["image_mask", *_names(_IMAGE, layers)]
    start = _export_start(model, beam_size, [f"first_{name}" for name in carried] + of_image)
    body = _export_body(model, beam_size, carried, of_image)
    finish = _export_finish(beam_size)

    loop = helper.make_node(
        "Loop",
        ["max_words", "", *(f"first_{name}" for name in carried)],
        [f"last_{name}" for name in carried] + ["step_words", "step_chosen", "step_attention"],
        name="beam_search",
        body=_as_loop_body(body, carried, of_image),
    )
    scores = helper.make_node("Identity", ["last_scores"], ["scores"])
    length = helper.make_tensor("max_words", TensorProto.INT64, [], [max_words])
    first = compose.add_prefix_graph(start.graph, "start/", rename_inputs=False, rename_outputs=False)
    last = compose.add_prefix_graph(finish.graph, "finish/", rename_inputs=False, rename_outputs=False)
    shape: list[str | int | None] = ["batch", beam_size]
    outputs = [
        helper.make_tensor_value_info("words", TensorProto.INT64, [*shape, "steps"]),
        helper.make_tensor_value_info("log_probabilities", TensorProto.FLOAT, [*shape, "steps"]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("attention", TensorProto.FLOAT, [*shape, "steps", "tokens"]),
    ]
    graph = helper.make_graph(
        [*first.node, loop, *last.node, scores], "captioner", list(start.graph.input), outputs,
        initializer=[*first.initializer, length, *last.initializer],
    )  # fmt: skip
    joined = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=start.ir_version)
    onnx.checker.check_model(joined)
    return joined


def _export_start(model: Smart, beam_size: int, outputs: list[str]) -> onnx.ModelProto:
    batch, tokens = Dim("batch"), Dim("tokens")
    return to_onnx(
        _Start(model, beam_size),
        {
            "tokens": torch.zeros(3, 11, model.config.token_width),
            "token_mask": torch.ones(3, 11, dtype=torch.bool),
        },
        outputs,
        {"tokens": {0: batch, 1: tokens}, "token_mask": {0: batch, 1: tokens}},
    )


def _export_body(model: Smart, beam_size: int, carried: list[str], of_image: list[str]) -> onnx.ModelProto:
    batch, slots, tokens = Dim("batch"), Dim("slots"), Dim("tokens")
    heads, width = model.config.heads, model.config.d_model // model.config.heads
    examples = {
        "position": torch.tensor(3),
        "words": torch.full((3, beam_size), Vocabulary.begin_id),
        "scores": torch.zeros(3, beam_size),
        "ended": torch.zeros(3, beam_size, dtype=torch.bool),
        "ancestry": torch.ones(3, beam_size, 13, dtype=torch.bool),
        "image_mask": torch.ones(3, 1, 1, 11, dtype=torch.bool),
    }
    dynamic = {
        **{name: {0: batch} for name in ("words", "scores", "ended")},
        "ancestry": {0: batch, 2: slots},
        "image_mask": {0: batch, 3: tokens},
    }
    for name in (*carried, *of_image):
        if name not in examples:
            axis = tokens if name in of_image else slots
            examples[name] = torch.zeros(3, heads, 11 if name in of_image else 13, width)
            dynamic[name] = {0: batch, 2: axis}
    outputs = ["going_on", *(f"next_{name}" for name in carried), "chosen", "attention"]
    return to_onnx(_Body(model, beam_size), examples, outputs, dynamic)


def _export_finish(beam_size: int) -> onnx.ModelProto:
    batch, steps, tokens = Dim("batch"), Dim("steps"), Dim("tokens")
    examples = {
        "step_words": torch.ones(4, 3, beam_size, dtype=torch.int64),
        "step_chosen": torch.zeros(4, 3, beam_size),
        "step_attention": torch.zeros(4, 3, beam_size, 11),
        "last_ancestry": torch.ones(3, beam_size, 4 * beam_size, dtype=torch.bool),
        "last_scores": torch.zeros(3, beam_size),
    }
    dynamic = {
        "step_words": {0: steps, 1: batch},
        "step_chosen": {0: steps, 1: batch},
        "step_attention": {0: steps, 1: batch, 3: tokens},
        "last_ancestry": {0: batch, 2: beam_size * steps},
        "last_scores": {0: batch},
    }
    return to_onnx(_Finish(beam_size), examples, ["words", "log_probabilities", "attention"], dynamic)


def _as_loop_body(body: onnx.ModelProto, carried: list[str], of_image: list[str]) -> onnx.GraphProto:
    """The exported step with Loop's signature; what belongs to the image is taken from the graph around it."""
    graph = compose.add_prefix_graph(body.graph, "step/", rename_inputs=False, rename_outputs=False)
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    # Caches grow by k slots a word: shapes of what is carried are left open.
    inputs = [
        helper.make_tensor_value_info("position", TensorProto.INT64, []),
        helper.make_tensor_value_info("was_going_on", TensorProto.BOOL, []),
        *(helper.make_tensor_value_info(name, types[name], None) for name in carried),
    ]
    outputs = ["going_on", *(f"next_{name}" for name in carried), "scanned_words", "chosen", "attention"]
    types["scanned_words"] = types["words"]
    words = helper.make_node("Identity", ["next_words"], ["scanned_words"])
    return helper.make_graph(
        [*graph.node, words], "beam_step", inputs,
        [helper.make_tensor_value_info(name, types[name], None) for name in outputs],
        initializer=list(graph.initializer),
    )  # fmt: skip
