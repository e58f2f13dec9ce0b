"""Beam search in PyTorch, for every family that obeys the contract (:mod:`training.models.captioner`).

:mod:`export.trace` exports :func:`select_continuations` and :func:`backtrack`, so the robot runs the search that
training and evaluation measure.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.models.captioner import Captioner, Visual, reorder_rows

EXCLUDED = -1e9
"""Log probability of a choice that is excluded; finite, so that sums and float16 graphs stay free of NaN."""


@dataclass(frozen=True)
class SearchSettings:
    """Settings of beam search.

    Raises:
        ValueError: the beam or the longest caption is empty.
    """

    beam_size: int = 5
    """k, number of hypotheses that are kept per image."""
    max_words: int = 20
    """Longest caption, end token included."""
    forbidden: tuple[int, ...] = (Vocabulary.padding_id, Vocabulary.begin_id, Vocabulary.unknown_id)
    """Ids that are never chosen; the probabilities are normalised over the others."""
    stop: Literal["best", "all", "never"] = "best"
    """``best``: when every image's best beam has ended. The best caption is final, because scores only fall; other
    beams may be unfinished. ``all``: when every beam has ended; results are padded to ``max_words``. ``never``: after
    ``max_words``; the search then never waits for the device, so that a CUDA graph can capture it."""

    def __post_init__(self) -> None:
        for name in ("beam_size", "max_words"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


class Hypotheses(NamedTuple):
    """The k best captions of each image, best first."""

    words: Tensor
    """(B, k, T) int64, padding after the end token."""
    log_probabilities: Tensor
    """(B, k, T) float32, natural, 0 after the end token."""
    scores: Tensor
    """(B, k) float32, sum of the log probabilities; there is no length normalisation."""
    attention: Tensor
    """(B, k, T, N) float32, the captioner's attention to the tokens when it predicted the word."""


class Continuations(NamedTuple):
    """The k best continuations of each image's beams, best first; each tensor is (B, k)."""

    words: Tensor
    """int64, padding where the beam had ended."""
    parents: Tensor
    """int64, index of the beam that is continued."""
    log_probabilities: Tensor
    """float32, natural logarithms of the words' probabilities; 0 where the beam had ended."""
    scores: Tensor
    """float32, sums of the log probabilities so far."""
    ended: Tensor
    """bool, True where the beam has its end token."""


def select_continuations(logits: Tensor, scores: Tensor, ended: Tensor) -> Continuations:
    """Select the k best of all k * V continuations of each image.

    A beam that has ended has one continuation: padding, with log probability 0.

    Args:
        logits: (B, k, V) float32, next-word logits of every beam.
        scores: (B, k) float32, scores of the beams, best first.
        ended: (B, k) bool, True where the beam has its end token.
    """
    beam_size = logits.shape[1]
    # The k best of an image are among the k best of each beam, which avoids a sort over k * V.
    best, words = logits.topk(beam_size, dim=-1)
    largest = best[..., :1]
    log_probabilities = best - largest - (logits - largest).exp().sum(dim=-1, keepdim=True).log()
    first = torch.arange(beam_size, device=logits.device) == 0
    padding = torch.where(first, 0.0, EXCLUDED).to(logits.dtype)
    log_probabilities = torch.where(ended[..., None], padding, log_probabilities)
    words = torch.where(ended[..., None], Vocabulary.padding_id, words)
    totals, choice = (scores[..., None] + log_probabilities).flatten(1).topk(beam_size, dim=-1)
    # A table, because the division of indices becomes four floating-point operators in a graph.
    parents = torch.arange(beam_size, device=logits.device).repeat_interleave(beam_size)[choice]
    words = words.flatten(1).gather(1, choice)
    chosen = log_probabilities.flatten(1).gather(1, choice)
    return Continuations(words, parents, chosen, totals, ended.gather(1, parents) | (words == Vocabulary.end_id))


def excluded_words(
    vocabulary_size: int, forbidden: tuple[int, ...], device: torch.device | str | None = None
) -> Tensor:
    """Make the addend that excludes words: (V,) float32, ``EXCLUDED`` for the forbidden ids and 0 for the others."""
    addend = torch.zeros(vocabulary_size, device=device)
    for word in forbidden:  # one by one: ids in a tensor would be copied from the host, which a CUDA graph cannot do
        addend[word] = EXCLUDED
    return addend


def beam_search(captioner: Captioner, visual: Visual, settings: SearchSettings) -> Hypotheses:
    """Search for the best captions of B images; the gradient passes through the log probabilities.

    Returns:
        :class:`Hypotheses` with T at most ``max_words``, ``max_words`` itself unless ``stop`` is ``best``.

    Raises:
        ValueError: the captioner cannot decode that many words.
    """
    beam_size, max_words = settings.beam_size, settings.max_words
    if captioner.max_words is not None and max_words > captioner.max_words:
        raise ValueError(f"max_words is {max_words}, but the captioner can decode {captioner.max_words} words at most")
    encoded = captioner.encode(visual)
    state = captioner.initial_state(encoded, beam_size)
    batch, device = visual.tokens.shape[0], visual.tokens.device
    excluded = excluded_words(captioner.config.vocabulary_size, settings.forbidden, device)
    words = torch.full((batch, beam_size), Vocabulary.begin_id, device=device)
    # All beams are equal at first: all but one are excluded, otherwise the same word would be chosen k times.
    scores = torch.where(torch.arange(beam_size, device=device) == 0, 0.0, EXCLUDED).repeat(batch, 1)
    ended = torch.zeros(batch, beam_size, dtype=torch.bool, device=device)
    own = torch.eye(beam_size, dtype=torch.bool, device=device).expand(batch, -1, -1)
    past = own[:, :, :0]
    history: list[tuple[Tensor, Tensor, Tensor]] = []
    for position in range(max_words):
        logits, attention, state = captioner.decode(words[..., None], position, past, state, encoded)
        words, parents, chosen, scores, ended = select_continuations(
            logits.squeeze(2).float() + excluded, scores, ended
        )
        state = reorder_rows(state, parents)
        past = torch.cat([past, own], dim=2).gather(1, parents[..., None].expand(-1, -1, past.shape[2] + beam_size))
        history.append((words, chosen, attention.squeeze(2).float()))
        if (settings.stop == "best" and bool(ended[:, 0].all())) or (settings.stop == "all" and bool(ended.all())):
            break
    all_words, all_chosen, all_attention = (torch.stack(kind) for kind in zip(*history, strict=True))
    found = backtrack(all_words, all_chosen, all_attention, torch.cat([past, own], dim=2), scores)
    missing = 0 if settings.stop == "best" else max_words - len(history)
    return Hypotheses(
        words=functional.pad(found.words, (0, missing), value=Vocabulary.padding_id),
        log_probabilities=functional.pad(found.log_probabilities, (0, missing)),
        scores=found.scores,
        attention=functional.pad(found.attention, (0, 0, 0, missing)),
    )


def backtrack(
    words: Tensor, log_probabilities: Tensor, attention: Tensor, ancestry: Tensor, scores: Tensor
) -> Hypotheses:
    """Follow each final beam back through the steps.

    Every step has a slot for each of its k rows. The slot of step t from which a beam descends is the row that step
    t's attention was computed for; the slot of step t + 1 is the row that received step t's word.

    Args:
        words, log_probabilities: (T, B, k), continuations of every step.
        attention: (T, B, k, N), attention of every step's rows.
        ancestry: (B, k, (T + 1) * k) bool, True for the slots that a final beam descends from; the last k slots are the
            final beams themselves.
        scores: (B, k), scores of the final beams.
    """
    batch, beam_size = scores.shape
    rows = ancestry.reshape(batch, beam_size, -1, beam_size).int().argmax(dim=-1)  # (B, k, T + 1)
    placed = rows[:, :, 1:].permute(2, 0, 1)
    computed = rows[:, :, :-1].permute(2, 0, 1)[..., None].expand(-1, -1, -1, attention.shape[-1])
    return Hypotheses(
        words=words.gather(2, placed).permute(1, 2, 0),
        log_probabilities=log_probabilities.gather(2, placed).permute(1, 2, 0),
        scores=scores,
        attention=attention.gather(2, computed).permute(1, 2, 0, 3),
    )
