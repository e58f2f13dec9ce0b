"""Trace a captioner with beam search to three graphs: one runs once per image, one once per word, one at the end.

:mod:`export.captioner_graph` joins them. Everything that is known of a captioner comes from its contract
(:mod:`training.models.captioner`): see :mod:`export.contract_shapes`.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

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
    Finished,
    backtrack,
    best_is_final,
    bias_after,
    bias_of_next,
    logit_addend,
    nothing_said,
    ranked_logits,
    repeated_ngrams,
    select_continuations,
    set_aside,
    with_unfinished,
)
from training.decoding.pieces import PieceTables
from training.models.captioner import Captioner, visible_slots

PAST = "past"
"""Which slots precede each beam's next word."""
_ENDED = "ended"
"""Which beams have ended; where hypotheses end apart, :data:`_FINISHED` instead."""
_FINISHED = tuple(f"finished_{name}" for name in Finished._fields)
_FINISHED_PAST = _FINISHED[Finished._fields.index("past")]
_SAID = "said"
"""The words of each beam, where none of its n-grams may be repeated."""
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
    """``step_words``, ``step_chosen``, ``step_attention`` and ``last_*`` of carried names -> the captions; also their
    ``scores`` where ``last_scores`` are not theirs (with guidance, penalties, or hypotheses that end apart)."""
    beam_size: int
    inputs: tuple[str, ...]
    """Inputs of the captioner graph."""
    carried: tuple[str, ...]
    """Tensors that are carried from word to word: the beams, and the captioner's state."""
    encoded: tuple[str, ...]
    """Tensors that are computed once per image."""
    slot_axes: Mapping[str, int]
    """The axis that grows with every word, for carried tensors that have one."""
    shapes: Mapping[str, Shape]
    """Shapes of the inputs of the three graphs, except what a pass has added to :attr:`encoded`."""


def trace_captioner(
    captioner: Captioner,
    search: Search,
    *,
    guided: bool = False,
    same_words: Tensor | None = None,
    pieces: PieceTables | None = None,
) -> TracedCaptioner:
    """Trace a captioner; layers that share an input become one (:mod:`export.passes.fuse`).

    Args:
        search: settings of the search. The longest caption is chosen when the graphs are joined; with
            ``no_repeat_ngram`` it must not exceed ``max_words``.
        guided: whether the graphs take a :class:`training.decoding.beam_search.WordGuide`.
        same_words, pieces: of :class:`training.decoding.beam_search.SearchSettings`; they become constants of the
            graphs.

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
        PAST: TensorSpec(torch.bool, (batch, beam_size, Size(SLOTS))),
        **_ended_specs(search, Size(SLOTS)),
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
    if search.no_repeat_ngram:
        carried[_SAID] = TensorSpec(torch.int64, (batch, beam_size, len(nothing_said(search, words))))
    # What belongs to the image comes first: the exporter takes the size of the batch from the first tensor that has it.
    stepping = {**encoded, "position": TensorSpec(torch.int64, ()), **carried}
    start = to_onnx(
        _Start(captioner, search, found, biased=biased), starting, [*(f"first_{name}" for name in carried), *encoded]
    )
    step = to_onnx(
        _Step(captioner, found, search, same_words, pieces),
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
        finish=_finish_graph(search, biased=biased),
        beam_size=beam_size,
        inputs=tuple(starting),
        carried=tuple(carried),
        encoded=kept,
        slot_axes={**{name: 2 for name in (PAST, _FINISHED_PAST) if name in carried}, **slot_axes},
        shapes={name: spec.shape for name, spec in {**starting, **stepping, **_finish_inputs(search)}.items()},
    )


class _Start(nn.Module):
    """Encode the image and make the state of a search that has not begun."""

    words: Tensor
    scores: Tensor
    ended: Tensor
    no_bias: Tensor
    said: Tensor

    def __init__(self, captioner: Captioner, search: Search, found: ContractShapes, *, biased: bool) -> None:
        super().__init__()
        self.captioner, self.beam_size, self.found = captioner, (beam_size := search.beam_size), found
        self.apart = search.finished != "in_beams"
        self.register_buffer("words", torch.full((1, beam_size), Vocabulary.begin_id))
        self.register_buffer("scores", torch.where(torch.arange(beam_size) == 0, 0.0, EXCLUDED)[None])
        self.register_buffer("ended", torch.zeros(1, beam_size, dtype=torch.bool))
        self.biased = biased
        self.register_buffer("no_bias", torch.zeros(1, 1, captioner.config.vocabulary_size))
        self.says_once = search.no_repeat_ngram > 0
        self.register_buffer("said", nothing_said(search, captioner.config.vocabulary_size))

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
        said = [self.said.repeat(batch, self.beam_size, 1)] if self.says_once else []
        states = len(self.found.state.names)
        scores = self.scores.repeat(batch, 1)
        return (
            self.words.repeat(batch, 1), scores, ended[..., None][:, :, :0],
            *(Finished.none(scores) if self.apart else (ended,)),
            *(tensor.clone() for tensor in kept[:states]), *bias, *said,
            *(tensor.clone() for tensor in kept[states:]),
        )  # fmt: skip


class _Step(nn.Module):
    """Decode one word of every beam and select the k best continuations."""

    addend: Tensor

    def __init__(
        self,
        captioner: Captioner,
        found: ContractShapes,
        search: Search,
        same_words: Tensor | None,
        pieces: PieceTables | None,
    ) -> None:
        super().__init__()
        self.captioner, self.found, self.search = captioner, found, search
        self.same_words, self.pieces = same_words, pieces
        self.register_buffer("addend", logit_addend(search, captioner.config.vocabulary_size))

    def forward(
        self, position: Tensor, words: Tensor, scores: Tensor, past: Tensor, **tensors: Tensor
    ) -> tuple[Tensor, ...]:
        encoded, state = self.found.encoded.unflatten(tensors), self.found.state.unflatten(tensors)
        logits, attention, state = self.captioner.decode(words[..., None], position, past, state, encoded)
        assert attention is not None
        logits, bias = logits.squeeze(2).float() + self.addend, tensors.get(_BIAS)
        rules = tensors.get(_GROUPS), self.same_words, self.search.repeat_penalty, self.pieces
        counted = None if bias is None else bias_of_next(bias, words, *rules)
        if _SAID in tensors:
            repeated = repeated_ngrams(tensors[_SAID], self.search.no_repeat_ngram, logits.shape[-1])
            counted = repeated if counted is None else counted + repeated
        ranked, past = ranked_logits(logits, counted, position, self.search), visible_slots(past, 1)
        ended: tuple[Tensor, ...]
        if _ENDED in tensors:
            found = select_continuations(logits, scores, tensors[_ENDED], self.search, ranked)
            ended = (found.ended,)
            best_ended, all_ended = found.ended[:, 0], found.ended.all(dim=1)
        else:
            none = torch.zeros_like(words, dtype=torch.bool)
            found = select_continuations(logits, scores, none, self.search, ranked)
            finished = Finished(*(tensors[name] for name in _FINISHED))
            found, finished = set_aside(found, finished, past, position, self.search)
            ended = finished
            best_ended, all_ended = best_is_final(finished, found.scores, self.search.length_penalty), finished.settled
        if _EVERY_BEAM in tensors:
            best_ended = best_ended & (all_ended | torch.logical_not(tensors[_EVERY_BEAM]))
        going_on = torch.logical_not(best_ended.all())
        carried = {
            name: _gathered(tensor, found.parents) if name in self.found.state.rows else tensor
            for name, tensor in self.found.state.flatten(state).items()
        }
        if bias is not None:
            continued, before = _gathered(bias, found.parents), _gathered(words, found.parents)
            carried[_BIAS] = bias_after(continued, before, found.words, *rules)
        if _SAID in tensors:
            said = _gathered(tensors[_SAID], found.parents)
            carried[_SAID] = torch.cat([said[..., 1:], found.words[..., None]], dim=-1)
        return (
            going_on, found.words, found.scores, _gathered(past, found.parents), *ended, *carried.values(),
            found.log_probabilities, attention.squeeze(2).float(),
        )  # fmt: skip


class _Finish(nn.Module):
    """Reconstruct the captions from the words and parents of every step."""

    own: Tensor

    def __init__(self, search: Search, *, biased: bool) -> None:
        super().__init__()
        self.search, self.biased = search, biased
        self.register_buffer("own", torch.eye(search.beam_size, dtype=torch.bool)[None])

    def forward(
        self,
        step_words: Tensor,
        step_chosen: Tensor,
        step_attention: Tensor,
        last_past: Tensor,
        last_scores: Tensor,
        **last: Tensor,
    ) -> tuple[Tensor, ...]:
        captions, past = None, torch.cat([last_past, self.own.expand(last_scores.shape[0], -1, -1)], dim=2)
        if last:
            finished = Finished(*(last[f"last_{name}"] for name in _FINISHED))
            captions = with_unfinished(finished, last_scores, last_past, self.search)
            past = captions.past
        found = backtrack(step_words, step_chosen, step_attention, past, last_scores, captions)
        assert found.attention is not None
        scores = (found.log_probabilities.sum(dim=-1),) if self.biased or last else ()
        return found.words, found.log_probabilities, found.attention, *scores


def _ended_specs(search: Search, slots: Size) -> dict[str, TensorSpec]:
    """Return the tensors that are carried of hypotheses that have ended."""
    batch, rows = Size(BATCH), (Size(BATCH), search.beam_size)
    if search.finished == "in_beams":
        return {_ENDED: TensorSpec(torch.bool, rows)}
    specs = (
        TensorSpec(torch.float32, rows), TensorSpec(torch.int64, rows), TensorSpec(torch.float32, rows),
        TensorSpec(torch.bool, (*rows, slots)), TensorSpec(torch.bool, (batch,)),
    )  # fmt: skip
    return dict(zip(_FINISHED, specs, strict=True))


def _finish_inputs(search: Search) -> dict[str, TensorSpec]:
    steps, batch, beam_size = Size(STEPS), Size(BATCH), search.beam_size
    slots = Size(STEPS, beam_size)
    apart = {} if search.finished == "in_beams" else _ended_specs(search, slots)
    return {
        "step_words": TensorSpec(torch.int64, (steps, batch, beam_size)),
        "step_chosen": TensorSpec(torch.float32, (steps, batch, beam_size)),
        "step_attention": TensorSpec(torch.float32, (steps, batch, beam_size, Size(TOKENS))),
        f"last_{PAST}": TensorSpec(torch.bool, (batch, beam_size, slots)),
        "last_scores": TensorSpec(torch.float32, (batch, beam_size)),
        **{f"last_{name}": spec for name, spec in apart.items()},
    }


@functools.cache
def _finish_graph(search: Search, *, biased: bool) -> onnx.ModelProto:
    """Trace the end of the search, once per process: it is the same for all captioners. Do not change the result."""
    captions = ["words", "log_probabilities", "attention"]
    captions += ["scores"] if biased or search.finished != "in_beams" else []
    return to_onnx(_Finish(search, biased=biased), _finish_inputs(search), captions)


def _gathered(rows: Tensor, parents: Tensor) -> Tensor:
    """Return the rows (B, k, ...) of the parents (B, k); torch.gather would need an index for each element of a row."""
    return torch.onnx.ops.symbolic(
        "GatherND", [rows, parents[..., None]], {"batch_dims": 1}, dtype=rows.dtype, shape=rows.shape
    )
