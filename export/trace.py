"""Trace a captioner with beam search to three graphs: what is computed once an image, once a word, and at the end.

:mod:`export.captioner_graph` joins them. Everything that is known of a captioner comes from its contract
(:mod:`training.models.captioner`): see :mod:`export.contract_shapes`.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import onnx
import torch
from torch import Tensor, nn

from export.contract_shapes import ContractShapes, measure, visual_inputs, visual_of
from export.passes.fuse import fuse_linears
from export.passes.hoist import hoist
from export.passes.rows import flatten_rows
from export.passes.simplify import simplify
from export.torch_to_onnx import BATCH, SLOTS, STEPS, TOKENS, Shape, Size, TensorSpec, to_onnx
from smart_caption_ros.captioning.bundle import EVERY_BEAM, WORD_BIAS, WORD_GROUPS
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.decoding.beam_search import (
    EXCLUDED,
    backtrack,
    logit_addend,
    next_bias,
    select_continuations,
)
from training.models.captioner import Captioner, visible_slots

PAST = "past"
"""Which slots precede each beam's next word."""
_BIAS, _GROUPS, _EVERY_BEAM = "guide_bias", "guide_groups", "guide_every_beam"
"""What a search with a guide or a penalty of repetitions carries from word to word, (B, k, V), and two inputs of a
guided search as the step takes them."""


@dataclass(frozen=True)
class TracedCaptioner:
    """Graphs that share names: an output of one is an input of the next under the same name."""

    start: onnx.ModelProto
    """:attr:`inputs` -> ``first_*`` of every carried name, and all encoded names."""
    step: onnx.ModelProto
    """``position``, the carried and the encoded names -> ``going_on``, ``next_*`` of every carried name, ``chosen``
    and ``attention``."""
    finish: onnx.ModelProto
    """``step_words``, ``step_chosen``, ``step_attention``, ``last_past``, ``last_scores`` -> the captions; of a search
    with a bias also their ``scores``, because ``last_scores`` contains guidance and penalties."""
    beam_size: int
    inputs: tuple[str, ...]
    """Inputs of the captioner graph."""
    carried: tuple[str, ...]
    """What goes from word to word: the beams, and the captioner's state."""
    encoded: tuple[str, ...]
    """What is computed once an image."""
    slot_axes: Mapping[str, int]
    """The axis that grows with every word, for carried tensors that have one."""
    shapes: Mapping[str, Shape]
    """Shapes of the inputs of the three graphs, except what a pass has added to :attr:`encoded`."""

    def with_precision(self, convert: Callable[[onnx.ModelProto], onnx.ModelProto]) -> "TracedCaptioner":
        """Convert the captioner's layers; the search stays as it is."""
        return replace(self, start=convert(self.start), step=convert(self.step))


def trace_captioner(
    captioner: Captioner, search: Search, *, guided: bool = False, same_words: Tensor | None = None
) -> TracedCaptioner:
    """Trace a captioner; layers that share an input become one (:mod:`export.passes.fuse`).

    Args:
        captioner: of any family.
        search: settings of the search; the longest caption is decided later.
        guided: whether the graphs take a :class:`training.decoding.beam_search.WordGuide`.
        same_words: of :class:`training.decoding.beam_search.SearchSettings`; it becomes a constant of the graphs.

    Raises:
        ValueError: the captioner breaks the contract; the message says how.
    """
    beam_size = search.beam_size
    captioner = captioner.eval()
    found = measure(captioner, beam_size)
    batch = Size(BATCH)
    carried = {
        "words": TensorSpec(torch.int64, (batch, beam_size)),
        "scores": TensorSpec(torch.float32, (batch, beam_size)),
        "ended": TensorSpec(torch.bool, (batch, beam_size)),
        PAST: TensorSpec(torch.bool, (batch, beam_size, Size(SLOTS))),
        **{name: found.specs[name] for name in found.state.names},
    }
    encoded = {name: found.specs[name] for name in found.encoded.names}
    starting = visual_inputs(captioner)
    words = captioner.config.vocabulary_size
    if guided:
        starting[WORD_BIAS] = TensorSpec(torch.float32, (batch, words))
        starting[WORD_GROUPS] = encoded[_GROUPS] = TensorSpec(torch.int32, (batch, words))
        starting[EVERY_BEAM] = encoded[_EVERY_BEAM] = TensorSpec(torch.bool, (batch,))
    biased = guided or same_words is not None
    if biased:
        carried[_BIAS] = TensorSpec(torch.float32, (batch, beam_size, words))
    # What belongs to the image comes first: the exporter takes the size of the batch from the first tensor that has it.
    stepping = {**encoded, "position": TensorSpec(torch.int64, ()), **carried}
    start = to_onnx(
        _Start(captioner, beam_size, found, biased=biased), starting, [*(f"first_{name}" for name in carried), *encoded]
    )
    step = to_onnx(
        _Step(captioner, found, search, same_words),
        stepping,
        ["going_on", *(f"next_{name}" for name in carried), "chosen", "attention"],
    )
    once, every_word, kept = hoist(
        fuse_linears(simplify(start)), flatten_rows(fuse_linears(simplify(step))), list(encoded)
    )
    slot_axes = {name: axis for name in found.state.names if (axis := found.slot_axis(name)) is not None}
    return TracedCaptioner(
        start=once,
        step=every_word,
        finish=_finish_graph(beam_size, biased=biased),
        beam_size=beam_size,
        inputs=tuple(starting),
        carried=tuple(carried),
        encoded=kept,
        slot_axes={PAST: 2, **slot_axes},
        shapes={name: spec.shape for name, spec in {**starting, **stepping, **_finish_inputs(beam_size)}.items()},
    )


class _Start(nn.Module):
    """Encode the image and make the state of a search that has not begun."""

    words: Tensor
    scores: Tensor
    ended: Tensor
    no_bias: Tensor

    def __init__(self, captioner: Captioner, beam_size: int, found: ContractShapes, *, biased: bool) -> None:
        super().__init__()
        self.captioner, self.beam_size, self.found = captioner, beam_size, found
        self.register_buffer("words", torch.full((1, beam_size), Vocabulary.begin_id))
        self.register_buffer("scores", torch.where(torch.arange(beam_size) == 0, 0.0, EXCLUDED)[None])
        self.register_buffer("ended", torch.zeros(1, beam_size, dtype=torch.bool))
        self.biased = biased
        self.register_buffer("no_bias", torch.zeros(1, 1, captioner.config.vocabulary_size))

    def forward(self, **inputs: Tensor) -> tuple[Tensor, ...]:
        visual = visual_of(inputs)
        batch = visual.tokens.shape[0]
        encoded = self.captioner.encode(visual)
        state = self.captioner.initial_state(encoded, self.beam_size)
        ended = self.ended.repeat(batch, 1)
        kept = [*self.found.state.flatten(state).values(), *self.found.encoded.flatten(encoded).values()]
        bias = [self.no_bias.repeat(batch, self.beam_size, 1)] if self.biased else []
        if WORD_BIAS in inputs:
            bias = [inputs[WORD_BIAS][:, None].repeat(1, self.beam_size, 1)]
            kept += [inputs[WORD_GROUPS], inputs[EVERY_BEAM]]
        states = len(self.found.state.names)
        return (
            self.words.repeat(batch, 1), self.scores.repeat(batch, 1), ended, ended[..., None][:, :, :0],
            *(tensor.clone() for tensor in kept[:states]), *bias, *(tensor.clone() for tensor in kept[states:]),
        )  # fmt: skip


class _Step(nn.Module):
    """Decode one word of every beam and select the k best continuations."""

    addend: Tensor

    def __init__(self, captioner: Captioner, found: ContractShapes, search: Search, same_words: Tensor | None) -> None:
        super().__init__()
        self.captioner, self.found, self.search, self.same_words = captioner, found, search, same_words
        self.register_buffer("addend", logit_addend(search, captioner.config.vocabulary_size))

    def forward(
        self, position: Tensor, words: Tensor, scores: Tensor, ended: Tensor, past: Tensor, **tensors: Tensor
    ) -> tuple[Tensor, ...]:
        encoded, state = self.found.encoded.unflatten(tensors), self.found.state.unflatten(tensors)
        logits, attention, state = self.captioner.decode(words[..., None], position, past, state, encoded)
        assert attention is not None
        bias = tensors.get(_BIAS)
        words, parents, chosen, scores, ended = select_continuations(
            logits.squeeze(2).float() + self.addend, scores, ended, bias
        )
        finished = ended[:, 0]
        if _EVERY_BEAM in tensors:
            finished = finished & (ended.all(dim=1) | torch.logical_not(tensors[_EVERY_BEAM]))
        going_on = torch.logical_not(finished.all())
        past = visible_slots(past, 1)
        carried = {
            name: _gathered(tensor, parents) if name in self.found.state.rows else tensor
            for name, tensor in self.found.state.flatten(state).items()
        }
        if bias is not None:
            carried[_BIAS] = next_bias(
                _gathered(bias, parents), tensors.get(_GROUPS), words, self.same_words, self.search.repeat_penalty
            )
        return (
            going_on, words, scores, ended, _gathered(past, parents), *carried.values(), chosen,
            attention.squeeze(2).float(),
        )  # fmt: skip


class _Finish(nn.Module):
    """Reconstruct the captions from the words and parents of every step."""

    own: Tensor

    def __init__(self, beam_size: int, *, biased: bool) -> None:
        super().__init__()
        self.biased = biased
        self.register_buffer("own", torch.eye(beam_size, dtype=torch.bool)[None])

    def forward(
        self, step_words: Tensor, step_chosen: Tensor, step_attention: Tensor, last_past: Tensor, last_scores: Tensor
    ) -> tuple[Tensor, ...]:
        past = torch.cat([last_past, self.own.expand(last_scores.shape[0], -1, -1)], dim=2)
        found = backtrack(step_words, step_chosen, step_attention, past, last_scores)
        assert found.attention is not None
        scores = (found.log_probabilities.sum(dim=-1),) if self.biased else ()
        return found.words, found.log_probabilities, found.attention, *scores


def _finish_inputs(beam_size: int) -> dict[str, TensorSpec]:
    steps, batch = Size(STEPS), Size(BATCH)
    return {
        "step_words": TensorSpec(torch.int64, (steps, batch, beam_size)),
        "step_chosen": TensorSpec(torch.float32, (steps, batch, beam_size)),
        "step_attention": TensorSpec(torch.float32, (steps, batch, beam_size, Size(TOKENS))),
        f"last_{PAST}": TensorSpec(torch.bool, (batch, beam_size, Size(STEPS, beam_size))),
        "last_scores": TensorSpec(torch.float32, (batch, beam_size)),
    }


@functools.cache
def _finish_graph(beam_size: int, *, biased: bool) -> onnx.ModelProto:
    """Trace the end of the search, which no captioner takes part in, once a process; nothing changes the result."""
    captions = ["words", "log_probabilities", "attention", *(["scores"] if biased else [])]
    return to_onnx(_Finish(beam_size, biased=biased), _finish_inputs(beam_size), captions)


def _gathered(rows: Tensor, parents: Tensor) -> Tensor:
    """Rows (B, k, ...) of the parents (B, k). torch.gather would need an index for each element of a row."""
    return torch.onnx.ops.symbolic(
        "GatherND", [rows, parents[..., None]], {"batch_dims": 1}, dtype=rows.dtype, shape=rows.shape
    )
