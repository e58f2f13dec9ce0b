"""Beam search in PyTorch, over the calls that every family offers (``encode``, ``step``).

The same search is exported to ONNX (:mod:`export.captioner`), so what is measured here is what the robot says.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.models.smart import DecoderState, Encoded

NEVER = -1e9
"""A log probability for what must not be chosen; finite, so that sums and fp16 graphs stay free of NaN."""


class StepModel(Protocol):
    """What decoding asks of a model: see :class:`training.models.smart.Smart`."""

    def encode(self, tokens: Tensor, mask: Tensor | None = None) -> Encoded: ...

    def initial_state(self, encoded: Encoded) -> DecoderState: ...

    def step(
        self, words: Tensor, position: Tensor, ancestry: Tensor, state: DecoderState, encoded: Encoded
    ) -> tuple[Tensor, Tensor, DecoderState]: ...


class Hypotheses(NamedTuple):
    """The k best captions of each image, best first."""

    words: Tensor
    """(B, k, T) int64, padding after the end token."""
    log_probabilities: Tensor
    """(B, k, T) natural, 0 after the end token."""
    scores: Tensor
    """(B, k) sum of the log probabilities; there is no length normalisation."""
    attention: Tensor
    """(B, k, T, N) cross-attention of the last layer, averaged over heads, when the word was chosen."""


def select(
    logits: Tensor, scores: Tensor, ended: Tensor, end_id: int, padding_id: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The k best of all k * V continuations of each image.

    A beam that has ended goes on as itself: one continuation by padding, with log probability 0.

    Args:
        logits: (B, k, V).
        scores: (B, k) of the beams, best first.
        ended: (B, k) bool.

    Returns:
        Each (B, k): words, parents (which beam is continued), log probabilities of the words, scores, ended.
    """
    beam_size = logits.shape[1]
    # The k best of an image are among the k best of each beam: no sort over k * V.
    best, words = logits.topk(beam_size, dim=-1)
    largest = best[..., :1]
    log_probabilities = best - largest - (logits - largest).exp().sum(dim=-1, keepdim=True).log()
    first = torch.arange(beam_size, device=logits.device) == 0
    resting = torch.where(first, 0.0, NEVER).to(logits.dtype)
    log_probabilities = torch.where(ended[..., None], resting, log_probabilities)
    words = torch.where(ended[..., None], padding_id, words)
    totals, choice = (scores[..., None] + log_probabilities).flatten(1).topk(beam_size, dim=-1)
    # A table, because the division of indices becomes four floating-point operators in a graph.
    parents = torch.arange(beam_size, device=logits.device).repeat_interleave(beam_size)[choice]
    words = words.flatten(1).gather(1, choice)
    chosen = log_probabilities.flatten(1).gather(1, choice)
    return words, parents, chosen, totals, ended.gather(1, parents) | (words == end_id)


def beam_search(
    model: StepModel,
    tokens: Tensor,
    mask: Tensor | None = None,
    *,
    beam_size: int = 5,
    max_words: int = 20,
    forbidden: tuple[int, ...] = (Vocabulary.padding_id, Vocabulary.begin_id, Vocabulary.unknown_id),
    begin_id: int = Vocabulary.begin_id,
    end_id: int = Vocabulary.end_id,
    padding_id: int = Vocabulary.padding_id,
    early_exit: bool = True,
) -> Hypotheses:
    """Beam search with cached keys and values that are never re-ordered.

    Args:
        tokens: (B, N, token_width); mask: (B, N) bool, True where a token is real, None when all are.
        max_words: the longest caption, end token included.
        forbidden: ids that are never chosen; log probabilities are among the words that may be.
        early_exit: stop when every image's best beam has ended. Scores only fall, so nothing can overtake it:
            the best caption is the same; lower beams may then be unfinished. Without it every beam is finished.

    Returns:
        :class:`Hypotheses` with T at most ``max_words``, without early exit ``max_words`` itself.
    """
    encoded = model.encode(tokens, mask)
    state = model.initial_state(encoded)
    batch, device = tokens.shape[0], tokens.device
    words = torch.full((batch, beam_size), begin_id, device=device)
    # All beams begin alike: all but the first are out of the race, else the same word would be chosen k times.
    scores = torch.where(torch.arange(beam_size, device=device) == 0, 0.0, NEVER).repeat(batch, 1)
    ended = torch.zeros(batch, beam_size, dtype=torch.bool, device=device)
    own = torch.eye(beam_size, dtype=torch.bool, device=device).expand(batch, -1, -1)
    ancestry = own[:, :, :0]
    history: list[tuple[Tensor, Tensor, Tensor]] = []
    for position in range(max_words):
        ancestry = torch.cat([ancestry, own], dim=2)
        logits, attention, state = model.step(words, torch.tensor(position, device=device), ancestry, state, encoded)
        logits = logits.float()
        if forbidden:
            logits[..., list(forbidden)] = NEVER
        words, parents, chosen, scores, ended = select(logits, scores, ended, end_id, padding_id)
        ancestry = ancestry.gather(1, parents[..., None].expand_as(ancestry))
        history.append((words, chosen, attention.float()))
        if bool((ended[:, 0] if early_exit else ended).all()):
            break
    steps = [torch.stack(kind) for kind in zip(*history, strict=True)]
    found = read_history(steps[0], steps[1], steps[2], torch.cat([ancestry, own], dim=2), scores)
    if early_exit or len(history) == max_words:
        return found
    rest = max_words - len(history)  # nothing but padding would have followed
    return Hypotheses(
        words=functional.pad(found.words, (0, rest), value=padding_id),
        log_probabilities=functional.pad(found.log_probabilities, (0, rest)),
        scores=found.scores,
        attention=functional.pad(found.attention, (0, 0, 0, rest)),
    )


def read_history(
    words: Tensor, log_probabilities: Tensor, attention: Tensor, ancestry: Tensor, scores: Tensor
) -> Hypotheses:
    """Follow each final beam back through the steps.

    The cache slot of step t that a beam descends from is the row that step t's attention was computed for; the
    slot of step t + 1 is the row in which step t's word was put.

    Args:
        words, log_probabilities: (T, B, k), of every step's continuations.
        attention: (T, B, k, N), of every step's rows.
        ancestry: (B, k, (T + 1) * k) bool, the last k slots being the final beams themselves.
        scores: (B, k).
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
