"""Constrained beam search: captions that contain words of given sets (Anderson et al., EMNLP 2017).

A constraint is a set of words, such as the name of a detected class with its plural and synonyms; one of them satisfies
it. The finite-state machine of C constraints has a state for each subset of satisfied constraints, and the search keeps
k beams in every state, so that likely captions without the words do not push out those that contain them.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.decoding.beam_search import excluded_words, is_end
from training.decoding.constraints import MOST_CONSTRAINTS
from training.models.captioner import Captioner, Visual, reorder_rows


class ConstrainedCaptions(NamedTuple):
    """The k best captions of each image, best first."""

    words: Tensor
    """(B, k, T) int64, padding after the end token."""
    log_probabilities: Tensor
    """(B, k, T) float32, natural, 0 after the end token."""
    scores: Tensor
    """(B, k) float32, sum of the log probabilities; minus infinity where the search found fewer than k captions."""
    satisfied: Tensor
    """(B, k, C) bool, whether the caption has a word of each constraint."""


@torch.inference_mode()
def constrained_beam_search(
    captioner: Captioner,
    visual: Visual,
    constraints: Sequence[Sequence[Collection[int]]],
    settings: Search,
    minimum: int = 2,
) -> ConstrainedCaptions:
    """Search for the best captions of B images that satisfy constraints.

    Args:
        captioner: of any family, in evaluation mode.
        constraints: up to three sets of word ids for each image; an image may have none.
        settings: of the search; ``beam_size`` is the number of beams in each state, and ``max_words``, ``forbidden``
            and ``end_penalty`` are as in beam search. The others are not used: the search ends when every beam has
            ended.
        minimum: how many of an image's constraints its captions satisfy; an image with fewer satisfies all of them.
            Where no caption of ``max_words`` words does, those that satisfy most are returned.

    Raises:
        ValueError: the number of constraints, or a word in them, is not allowed, or the captioner cannot decode
            ``max_words`` words.
    """
    batch, device = visual.tokens.shape[0], visual.tokens.device
    _check(captioner, constraints, settings, batch)
    machine = _Machine(constraints, captioner.config.vocabulary_size, settings.beam_size, device)
    group, beams = machine.states * settings.beam_size, settings.beam_size
    encoded = captioner.encode(visual)
    state = captioner.initial_state(encoded, group)
    forbidden = excluded_words(captioner.config.vocabulary_size, settings.forbidden, device) < 0
    scores = torch.full((batch, group), -torch.inf, device=device)
    scores[:, 0] = 0.0
    ended = torch.zeros(batch, group, dtype=torch.bool, device=device)
    last = torch.full((batch, group), Vocabulary.begin_id, device=device)
    words = torch.zeros(batch, group, 0, dtype=torch.int64, device=device)
    chosen = torch.zeros(batch, group, 0, device=device)
    own = torch.eye(group, dtype=torch.bool, device=device).expand(batch, -1, -1)
    past = own[:, :, :0]
    for position in range(settings.max_words):
        step = captioner.decode(last[..., None], position, past, state, encoded, attention=False)
        logits = step.logits.squeeze(2).float().masked_fill(forbidden, -torch.inf)
        logits[..., Vocabulary.end_id] -= settings.end_penalty
        log_probabilities = logits.log_softmax(dim=-1).masked_fill(ended[..., None], -torch.inf)
        log_probabilities[..., Vocabulary.padding_id].masked_fill_(ended, 0.0)
        totals = scores[..., None] + log_probabilities
        scores, parents, last = machine.continuations(totals)
        gained = log_probabilities.gather(1, parents[..., None].expand_as(log_probabilities))
        gained = gained.gather(2, last[..., None])
        words = torch.cat([words.gather(1, parents[..., None].expand_as(words)), last[..., None]], dim=2)
        chosen = torch.cat([chosen.gather(1, parents[..., None].expand_as(chosen)), gained], dim=2)
        ended = ended.gather(1, parents) | is_end(last, settings)
        past = torch.cat([past, own], dim=2)
        past = past.gather(1, parents[..., None].expand_as(past))
        state = reorder_rows(step.state, parents)
        if bool((ended | scores.isinf()).all()):
            break
    return machine.best(words, chosen, scores, minimum, beams)


def _check(captioner: Captioner, constraints: Sequence[Sequence[Collection[int]]], settings: Search, size: int) -> None:
    if captioner.max_words is not None and settings.max_words > captioner.max_words:
        raise ValueError(
            f"max_words is {settings.max_words}, but the captioner can decode {captioner.max_words} words at most"
        )
    if len(constraints) != size:
        raise ValueError(f"constraints are for {len(constraints)} images, but there are {size} images")
    for image, sets in enumerate(constraints):
        if len(sets) > MOST_CONSTRAINTS:
            raise ValueError(f"image {image} has {len(sets)} constraints; {MOST_CONSTRAINTS} are the most")
        for ids in sets:
            for index in ids:
                if not len(SPECIAL) <= index < captioner.config.vocabulary_size:
                    raise ValueError(f"image {image} has a constraint with the id {index}, which is no word")


class _Machine:
    """The finite-state machines of B images: state s is the set of satisfied constraints, as bits."""

    def __init__(
        self,
        constraints: Sequence[Sequence[Collection[int]]],
        vocabulary_size: int,
        beam_size: int,
        device: torch.device,
    ) -> None:
        self._beams = beam_size
        self._constraints = max((len(sets) for sets in constraints), default=0)
        self.states = 2**self._constraints
        self._counts = torch.tensor([len(sets) for sets in constraints], device=device)
        self._bits = torch.zeros(len(constraints), vocabulary_size, dtype=torch.int64)
        for image, sets in enumerate(constraints):
            for place, ids in enumerate(sets):
                for index in ids:
                    self._bits[image, index] |= 1 << place
        self._bits = self._bits.to(device)
        places = torch.arange(self._constraints, device=device)
        self._satisfied = (torch.arange(self.states, device=device)[:, None] >> places) % 2 == 1  # (states, C)

    def continuations(self, totals: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Select the k best continuations that lead to each state.
        ``totals``: (B, states * k, V), scores of all continuations.

        Returns:
            Scores, parents and words, each (B, states * k).
        """
        vocabulary_size = totals.shape[-1]
        before = torch.arange(self.states, device=totals.device)[:, None]
        after = (before | self._bits[:, None]).repeat_interleave(self._beams, dim=1)  # (B, states * k, V)
        found = [
            totals.masked_fill(after != state, -torch.inf).flatten(1).topk(self._beams, dim=-1)
            for state in range(self.states)
        ]
        choice = torch.cat([indices for _, indices in found], dim=1)
        scores = torch.cat([values for values, _ in found], dim=1)
        return scores, choice.div(vocabulary_size, rounding_mode="floor"), choice % vocabulary_size

    def best(self, words: Tensor, chosen: Tensor, scores: Tensor, minimum: int, count: int) -> ConstrainedCaptions:
        """Select the best captions among those that satisfy as many constraints as they have to, or else most."""
        satisfied = self._satisfied.repeat_interleave(self._beams, dim=0)  # (states * k, C)
        needed = self._counts.clamp(max=minimum)
        reached = torch.minimum(satisfied.sum(dim=1)[None], needed[:, None]).masked_fill(scores.isinf(), -1)
        most = reached.max(dim=1, keepdim=True).values
        best, rows = scores.masked_fill(reached != most, -torch.inf).topk(count, dim=1)
        words, chosen = (
            values.gather(1, rows[..., None].expand(-1, -1, values.shape[2])) for values in (words, chosen)
        )
        none = best.isinf()[..., None]
        return ConstrainedCaptions(
            words.masked_fill(none, Vocabulary.padding_id),
            chosen.masked_fill(none, 0.0),
            best,
            satisfied[rows] & ~none,
        )
