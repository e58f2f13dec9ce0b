"""Beam search in PyTorch, for every family that obeys the contract (:mod:`training.models.captioner`).

:mod:`export.trace` exports :func:`select_continuations` and :func:`backtrack`, so the robot runs the search that
training and evaluation measure.
"""

import copy
import functools
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_map_only

from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.decoding.pieces import PieceTables
from training.models.captioner import Captioner, Encoded, Visual, map_state, reorder_rows

EXCLUDED = -1e9
"""Log probability of a choice that is excluded; finite, so that sums and float16 graphs stay free of NaN."""


@dataclass(frozen=True)
class SearchSettings(Search):
    """Settings of beam search, and of what it computes beside the captions.

    Raises:
        ValueError: as :class:`Search`; or ``repeat_penalty`` comes without ``same_words``.
    """

    stop: Literal["best", "all", "never"] = "best"
    """``best``: when every image's best beam has ended. The best caption is final, because scores only fall; other
    beams may be unfinished. (With a :class:`WordGuide` a beam that has not ended may still gain, so that the search is
    exact with ``all`` alone.) ``all``: when every beam has ended; results are padded to ``max_words``. ``never``: after
    ``max_words``; the search then never waits for the device, so that a CUDA graph can capture it."""
    attention: bool = True
    """Whether the attention weights are returned."""
    same_words: Tensor | None = None
    """(V,) int32 of :func:`training.decoding.repeats.same_words`, which ``repeat_penalty`` needs."""
    pieces: PieceTables | None = None
    """Tables of the vocabulary's pieces of words; None where all are whole words."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.repeat_penalty and self.same_words is None:
            raise ValueError("repeat_penalty needs same_words, which says what words count as the same")


class WordGuide(NamedTuple):
    """Biases of words that name the objects detected in each image.

    The search ranks beams by log probability + the biases of their words, where a group of words (those that name one
    class) counts once, by the first of its words in the caption. Probabilities of words and scores of captions remain
    those of the model.
    """

    bias: Tensor
    """(B, V) float32, natural logarithm, added to the log probability of a word when the search chooses."""
    groups: Tensor
    """(B, V) int32, group of each word, from 1; 0 for words without bias. After a word of a group, the bias of all its
    words is 0."""


class Hypotheses(NamedTuple):
    """The k best captions of each image, best first; with a :class:`WordGuide` in the order of score + guidance."""

    words: Tensor
    """(B, k, T) int64, padding after the end token."""
    log_probabilities: Tensor
    """(B, k, T) float32, natural, 0 after the end token."""
    scores: Tensor
    """(B, k) float32, sum of the log probabilities; there is no length normalisation, and no penalty of
    repetitions."""
    attention: Tensor | None
    """(B, k, T, N) float32, the captioner's attention to the tokens when it predicted the word; None where the
    settings do not ask for it."""


class Continuations(NamedTuple):
    """The k best continuations of each image's beams, best first; each tensor is (B, k)."""

    words: Tensor
    """int64, padding where the beam had ended."""
    parents: Tensor
    """int64, index of the beam that is continued."""
    log_probabilities: Tensor
    """float32, natural logarithms of the words' probabilities; 0 where the beam had ended."""
    scores: Tensor
    """float32, sums of the log probabilities so far, and of the biases of the words."""
    ended: Tensor
    """bool, True where the beam has its end token."""


class Finished(NamedTuple):
    """The k best hypotheses of each image that have ended and occupy no beam, best first."""

    scores: Tensor
    """(B, k) float32, rank of each: scores and biases / length ** length_penalty; ``EXCLUDED`` where there is none."""
    words: Tensor
    """(B, k) int64, its last word."""
    log_probabilities: Tensor
    """(B, k) float32, natural, of the last word."""
    past: Tensor
    """(B, k, S) bool, which of the slots of all words of all beams it descends from."""
    settled: Tensor
    """(B,) bool, True for an image whose search has ended: no beam can enter any more."""

    @classmethod
    def none(cls, scores: Tensor) -> "Finished":
        """Return what has ended before the first word of beams with (B, k) scores: nothing."""
        nothing = torch.zeros_like(scores, dtype=torch.bool)
        return cls(
            scores=torch.full_like(scores, EXCLUDED),
            words=torch.zeros_like(scores, dtype=torch.int64),
            log_probabilities=torch.zeros_like(scores),
            past=nothing[..., None][:, :, :0],
            settled=nothing[:, 0],
        )


def is_end(words: Tensor, search: Search) -> Tensor:
    """Return which words end a caption, bool."""
    return functools.reduce(torch.logical_or, (words == end for end in search.ends))


def select_continuations(
    logits: Tensor, scores: Tensor, ended: Tensor, search: Search, ranked: Tensor | None = None
) -> Continuations:
    """Select the k best of all k * V continuations of each image.

    A beam that has ended has one continuation: padding, with log probability 0.

    Args:
        logits: (B, k, V) float32, next-word logits of every beam.
        scores: (B, k) float32, scores of the beams, best first.
        ended: (B, k) bool, True where the beam has its end token.
        ranked: (B, k, V) float32, logits and biases by which words are chosen, where they differ from ``logits``.

    Returns:
        The k best; where hypotheses end apart, as many more as can end.
    """
    beam_size = logits.shape[1]
    ending = 0 if search.finished == "in_beams" else len(search.ends)
    of_beam, spare = min(beam_size + ending, logits.shape[-1]), ending * beam_size
    # The k best of an image are among the k best of each beam, which avoids a sort over k * V. Spare ones are wanted in
    # place of those that end, of which each beam has one for each word that ends captions.
    best, words = (logits if ranked is None else ranked).topk(of_beam, dim=-1)
    own = best if ranked is None else logits.gather(-1, words)
    largest = best[..., :1] if ranked is None else logits.amax(dim=-1, keepdim=True)
    log_probabilities = own - largest - (logits - largest).exp().sum(dim=-1, keepdim=True).log()
    first = torch.arange(of_beam, device=logits.device) == 0
    padding = torch.where(first, 0.0, EXCLUDED).to(logits.dtype)
    gains = log_probabilities if ranked is None else log_probabilities + (best - own)
    gains = torch.where(ended[..., None], padding, gains)
    log_probabilities = torch.where(ended[..., None], padding, log_probabilities)
    words = torch.where(ended[..., None], Vocabulary.padding_id, words)
    totals, choice = (scores[..., None] + gains).flatten(1).topk(beam_size + spare, dim=-1)
    # A table, because the division of indices becomes four floating-point operators in a graph.
    parents = torch.arange(beam_size, device=logits.device).repeat_interleave(of_beam)[choice]
    words = words.flatten(1).gather(1, choice)
    chosen = log_probabilities.flatten(1).gather(1, choice)
    return Continuations(words, parents, chosen, totals, ended.gather(1, parents) | is_end(words, search))


def ranked_logits(logits: Tensor, bias: Tensor | None, position: Tensor | int, search: Search) -> Tensor | None:
    """Return by what words are chosen: logits and biases, without what ends captions in those that are too short.

    Args:
        logits: (B, k, V) float32.
        bias: (B, k, V) float32; None for none.
        position: number of words before, () int64.

    Returns:
        (B, k, V) float32; None where words are chosen by the logits.
    """
    if bias is not None:
        logits = logits + bias
    if search.min_words == 1:
        return None if bias is None else logits
    end = is_end(torch.arange(logits.shape[-1], device=logits.device), search)
    return torch.where(end & (position < search.min_words - 1), EXCLUDED, logits)


def repeated_ngrams(said: Tensor, size: int, vocabulary_size: int) -> Tensor:
    """Return what excludes the words that would say n words again, as transformers' ``NoRepeatNGramLogitsProcessor``.
    ``said``: (B, k, L) int64 of :func:`nothing_said`, the words of each beam; ``size``: n.

    Returns:
        (B, k, V) float32, ``EXCLUDED`` for these words and 0 for the others.
    """
    following = said[..., size - 1 :]
    count = following.shape[-1]
    for place in range(size - 1):
        same = said[..., place : place + count] == said[..., place + count :][..., :1]
        following = torch.where(same, following, vocabulary_size)
    addend = torch.zeros(*said.shape[:2], vocabulary_size + 1, device=said.device)
    return addend.scatter(-1, following, EXCLUDED)[..., :-1]


def nothing_said(search: Search, vocabulary_size: int, device: torch.device | str | None = None) -> Tensor:
    """Make the words before a caption, (L,) int64: the last is the newest, V stands in the places before the first."""
    before = search.forced_begin or (Vocabulary.begin_id,)
    said = torch.full((max(search.max_words + len(before), search.no_repeat_ngram),), vocabulary_size, device=device)
    for place, word in enumerate(reversed(before)):
        said[-1 - place] = word
    return said


def set_aside(
    found: Continuations, finished: Finished, past: Tensor, position: Tensor | int, search: Search
) -> tuple[Continuations, Finished]:
    """Move the hypotheses that end among the k best continuations out of the beams, as transformers does.

    Args:
        found: the k best continuations of each image, and the spare ones.
        finished: what has ended before.
        past: (B, k, S) bool, which slots each beam descends from, with those of this step.
        position: number of words before, () int64.

    Returns:
        The k best continuations that have not ended, and what has ended now.
    """
    beam_size = past.shape[1]
    running, kept = torch.where(found.ended, EXCLUDED, found.scores).topk(beam_size, dim=-1)
    words, parents, chosen = (field.gather(1, kept) for field in found[:3])
    going_on = Continuations(words, parents, chosen, running, found.ended.gather(1, kept))
    divisor = length_divisor(position + 1, search)
    settled = finished.settled
    if search.finished == "apart_until_k":  # k of the words before: beams of the longest caption compete with its ends
        settled = settled | (finished.scores[:, -1] > EXCLUDED / 2)
    ends = found.ended[:, :beam_size] & torch.logical_not(settled[:, None])
    scores = torch.where(ends, found.scores[:, :beam_size] / divisor, EXCLUDED)
    scores, best = torch.cat([finished.scores, scores], dim=1).topk(beam_size, dim=-1)
    earlier = torch.cat([finished.past, torch.zeros_like(past[:, :, :beam_size])], dim=2)
    ending = found.parents[:, :beam_size, None].expand_as(past)
    paths = torch.cat([earlier, past.gather(1, ending)], dim=1)
    last_words = torch.cat([finished.words, found.words[:, :beam_size]], dim=1)
    last_chosen = torch.cat([finished.log_probabilities, found.log_probabilities[:, :beam_size]], dim=1)
    if search.finished == "apart":
        settled = settled | (running[:, 0] / divisor <= scores[:, -1])
    return going_on, Finished(
        scores, last_words.gather(1, best), last_chosen.gather(1, best),
        paths.gather(1, best[..., None].expand(-1, -1, paths.shape[2])), settled,
    )  # fmt: skip


def best_is_final(finished: Finished, scores: Tensor, length_penalty: float) -> Tensor:
    """Return for which images no beam, with (B, k) ``scores``, can become the best caption: (B,) bool.

    Scores only fall, but with a length penalty their quotients do not; only the end of the search is final then.
    """
    return finished.settled if length_penalty else finished.settled | (scores[:, 0] <= finished.scores[:, 0])


def length_divisor(words: Tensor | int, search: Search) -> Tensor | float:
    """Compute the divisor of the scores of captions with so many words, a number or a tensor of any shape."""
    if not search.length_penalty:
        return 1.0
    length = words + len(search.forced_begin)
    return (length.float() if isinstance(length, Tensor) else float(length)) ** search.length_penalty


def with_unfinished(finished: Finished, scores: Tensor, past: Tensor, search: Search) -> Finished:
    """Let the beams, which have not ended, into the k best of the images whose search has not ended either.

    Args:
        scores: (B, k), of the beams.
        past: (B, k, T * k) bool, which slots each of them descends from.

    Returns:
        The k best, with (T + 1) * k slots: a beam's last word is found in the last k slots.
    """
    beam_size = scores.shape[1]
    ranks = scores / length_divisor(past.int().sum(dim=-1) + int(search.forced_end), search)
    settled = finished.settled
    if search.forced_end and search.finished == "apart_until_k":  # the forced end is a word after the last
        settled = settled | (finished.scores[:, -1] > EXCLUDED / 2)
    ranks, best = torch.cat(
        [finished.scores, torch.where(settled[:, None], EXCLUDED, ranks)], dim=1
    ).topk(beam_size, dim=-1)  # fmt: skip
    own = torch.eye(beam_size, dtype=torch.bool, device=past.device).expand(past.shape[0], -1, -1)
    ended = torch.cat([finished.past, torch.zeros_like(own)], dim=2)
    paths = torch.cat([ended, torch.cat([past, own], dim=2)], dim=1)
    words = torch.cat([finished.words, torch.zeros_like(finished.words)], dim=1)
    chosen = torch.cat([finished.log_probabilities, torch.zeros_like(scores)], dim=1)
    return Finished(
        ranks, words.gather(1, best), chosen.gather(1, best),
        paths.gather(1, best[..., None].expand(-1, -1, paths.shape[2])), finished.settled,
    )  # fmt: skip


def next_bias(
    bias: Tensor, groups: Tensor | None, words: Tensor, same_words: Tensor | None = None, penalty: float = 0.0
) -> Tensor:
    """Return the bias after a word: 0 for the words of its group, minus the penalty for repetitions of it.

    Args:
        bias: (B, k, V) float32, of the beams that were continued.
        groups: (B, V) int32, as in :class:`WordGuide`; None without a guide.
        words: (B, k) int64, the words that continued them.
        same_words, penalty: of :class:`SearchSettings`, on the device of the words; None for no penalty.
    """
    if groups is not None:
        ends = groups[:, None] == groups.gather(1, words)[..., None]
        if same_words is not None:  # the penalty stays when another word of its group is said
            ends = ends & (bias != -penalty)
        bias = torch.where(ends, 0.0, bias)
    if same_words is not None:
        said = same_words[words][..., None]
        bias = torch.where((same_words == said) & (said > 0), -penalty, bias)
    return bias


def bias_of_next(
    bias: Tensor,
    last: Tensor,
    groups: Tensor | None,
    same_words: Tensor | None,
    penalty: float,
    pieces: PieceTables | None,
) -> Tensor:
    """Return the bias (B, k, V) by which the next word is chosen or, in a vocabulary of pieces, the next piece.

    Args:
        bias, groups, same_words, penalty: of :func:`next_bias`.
        last: (B, k) int64, what each beam has said last.
        pieces: of the vocabulary; None where all are whole words.
    """
    if pieces is None:
        return bias
    after = next_bias(bias, groups, pieces.words_so_far(last), same_words, penalty)
    return pieces.counted(bias, after, last, penalty)


def bias_after(
    bias: Tensor,
    before: Tensor,
    words: Tensor,
    groups: Tensor | None,
    same_words: Tensor | None,
    penalty: float,
    pieces: PieceTables | None,
) -> Tensor:
    """Return the bias (B, k, V) after a word or, in a vocabulary of pieces, after a piece: a word is said when the next
    piece shows that it was whole.

    Args:
        bias, words, groups, same_words, penalty: of :func:`next_bias`.
        before: (B, k) int64, what each beam had said before ``words``.
        pieces: of the vocabulary; None where all are whole words.
    """
    said = words if pieces is None else pieces.completed(before, words)
    return next_bias(bias, groups, said, same_words, penalty)


def excluded_words(
    vocabulary_size: int, forbidden: tuple[int, ...], device: torch.device | str | None = None
) -> Tensor:
    """Make the addend that excludes words: (V,) float32, ``EXCLUDED`` for the forbidden ids and 0 for the others."""
    addend = torch.zeros(vocabulary_size, device=device)
    for word in forbidden:  # one by one: ids in a tensor would be copied from the host, which a CUDA graph cannot do
        addend[word] = EXCLUDED
    return addend


def logit_addend(search: Search, vocabulary_size: int, device: torch.device | str | None = None) -> Tensor:
    """Make what the search adds to the logits, (V,) float32: it excludes words and penalises the end token."""
    addend = excluded_words(vocabulary_size, search.forbidden, device)
    addend[Vocabulary.end_id] -= search.end_penalty
    return addend


def beam_search(
    captioner: Captioner, visual: Visual, settings: SearchSettings, guide: WordGuide | None = None
) -> Hypotheses:
    """Search for the best captions of B images; the gradient passes through the log probabilities.

    Returns:
        :class:`Hypotheses` with T at most ``max_words``, ``max_words`` itself unless ``stop`` is ``best``.

    Raises:
        ValueError: the captioner cannot decode that many words.
    """
    return search_captions(captioner, captioner.encode(visual), visual, settings, guide)


def search_captions(
    captioner: Captioner,
    encoded: Encoded,
    visual: Visual,
    settings: SearchSettings,
    guide: WordGuide | None = None,
) -> Hypotheses:
    """Search for the best captions of images that are already encoded, as :func:`beam_search` does.

    Images leave the batch when their search has ended, so that the last words are decoded for few of them. Whether it
    has is asked after every word, on a GPU after every fourth one, because the host waits for the answer; words after
    the end do not change the captions.
    """
    max_words = settings.max_words
    if captioner.max_words is not None and max_words > captioner.max_words:
        raise ValueError(f"max_words is {max_words}, but the captioner can decode {captioner.max_words} words at most")
    batch, device = visual.tokens.shape[0], visual.tokens.device
    search = _Search(captioner, encoded, batch, device, settings, guide)
    images = torch.arange(batch, device=device)
    asked_every = _ASKED_EVERY if device.type == "cuda" else 1
    finished: list[tuple[Tensor, Hypotheses]] = []
    for position in range(max_words):
        search.step(position)
        if settings.stop == "never" or position == max_words - 1 or (position + 1) % asked_every:
            continue
        ended = search.has_ended()
        count = int(ended.sum())
        if count == len(images):
            break
        if count > _ENDED_SHARE * len(images):
            rows = ended.nonzero()[:, 0]
            finished.append((images[rows], search.select(rows).hypotheses()))
            rows = (~ended).nonzero()[:, 0]
            search, images = search.select(rows), images[rows]
    finished.append((images, search.hypotheses()))
    length = max_words if settings.stop != "best" else max(found.words.shape[2] for _, found in finished)
    parts = [_pad(found, length) for _, found in finished]
    if len(parts) == 1:
        return parts[0]
    order = torch.cat([rows for rows, _ in finished]).argsort()
    words, chosen, scores = (torch.cat(field)[order] for field in list(zip(*parts, strict=True))[:3])
    weights = [part.attention for part in parts if part.attention is not None]
    return Hypotheses(words, chosen, scores, torch.cat(weights)[order] if weights else None)


_ASKED_EVERY = 4
"""Words of a search on a GPU between two questions whether it has ended."""
_ENDED_SHARE = 0.2
"""Share of the images that must have ended before they leave the batch: selecting the others copies their state."""


class _Search:
    """The beams of B images after a number of words."""

    def __init__(
        self,
        captioner: Captioner,
        encoded: Encoded,
        batch: int,
        device: torch.device,
        settings: SearchSettings,
        guide: WordGuide | None,
    ) -> None:
        beam_size = settings.beam_size
        self._captioner, self._encoded, self._settings = captioner, encoded, settings
        self._state = captioner.initial_state(encoded, beam_size)
        self._addend = logit_addend(settings, captioner.config.vocabulary_size, device)
        self._words = torch.full((batch, beam_size), Vocabulary.begin_id, device=device)
        # All beams are equal at first: all but one are excluded, otherwise the same word would be chosen k times.
        self._scores = torch.where(torch.arange(beam_size, device=device) == 0, 0.0, EXCLUDED).repeat(batch, 1)
        self.ended = torch.zeros(batch, beam_size, dtype=torch.bool, device=device)
        # Which of the k rows of every step each beam descends from, (B, k, steps * k): backtrack and the captioner's
        # attention to earlier words read it.
        self._own = torch.eye(beam_size, dtype=torch.bool, device=device).expand(batch, -1, -1)
        self._past = self._own[:, :, :0]
        self._finished = None if settings.finished == "in_beams" else Finished.none(self._scores)
        self._groups = None if guide is None else guide.groups
        self._bias = None if guide is None else guide.bias[:, None].expand(-1, beam_size, -1)
        # Copied here, not at every word: a copy from the host waits for the device.
        self._pieces = None if settings.pieces is None else PieceTables(*(t.to(device) for t in settings.pieces))
        self._same_words = settings.same_words.to(device) if settings.same_words is not None else None
        if self._bias is None and self._same_words is not None:
            self._bias = torch.zeros(batch, beam_size, captioner.config.vocabulary_size, device=device)
        self._said = None
        if settings.no_repeat_ngram:
            said = nothing_said(settings, captioner.config.vocabulary_size, device)
            self._said = said.expand(batch, beam_size, -1)
        self._history: list[tuple[Tensor, Tensor, Tensor | None]] = []

    def step(self, position: int) -> None:
        """Add a word to every beam."""
        logits, attention, state = self._captioner.decode(
            self._words[..., None],
            position,
            self._past,
            self._state,
            self._encoded,
            attention=self._settings.attention,
        )
        settings = self._settings
        logits = logits.squeeze(2).float() + self._addend
        rules = self._groups, self._same_words, settings.repeat_penalty, self._pieces
        bias = None if self._bias is None else bias_of_next(self._bias, self._words, *rules)
        if self._said is not None:
            repeated = repeated_ngrams(self._said, settings.no_repeat_ngram, logits.shape[-1])
            bias = repeated if bias is None else bias + repeated
        ranked = ranked_logits(logits, bias, position, settings)
        found = select_continuations(logits, self._scores, self.ended, settings, ranked)
        past = torch.cat([self._past, self._own], dim=2)
        if self._finished is not None:
            found, self._finished = set_aside(found, self._finished, past, position, settings)
        before = self._words
        self._words, parents, chosen, self._scores, self.ended = found
        if self._bias is not None:
            continued = self._bias.gather(1, parents[..., None].expand_as(self._bias))
            self._bias = bias_after(continued, before.gather(1, parents), self._words, *rules)
        if self._said is not None:
            said = self._said.gather(1, parents[..., None].expand_as(self._said))
            self._said = torch.cat([said[..., 1:], self._words[..., None]], dim=-1)
        self._state = reorder_rows(state, parents)
        self._past = past.gather(1, parents[..., None].expand_as(past))
        weights = attention.squeeze(2).float() if self._settings.attention and attention is not None else None
        self._history.append((self._words, chosen, weights))

    def has_ended(self) -> Tensor:
        """Return for which images, (B,) bool, the search has ended by the rule of the settings."""
        best = self._settings.stop == "best"
        if self._finished is None:
            return self.ended[:, 0] if best else self.ended.all(dim=1)
        if best:
            return best_is_final(self._finished, self._scores, self._settings.length_penalty)
        return self._finished.settled

    def select(self, images: Tensor) -> "_Search":
        """Return the beams of some of the images, (n,) int64."""

        def select(values: Tensor) -> Tensor:
            return values.index_select(0, images)

        selected = copy.copy(self)
        selected._state = map_state(self._state, select, select)
        names = "_encoded _words _scores ended _own _past _bias _finished _said _groups _history"
        for name in names.split():
            setattr(selected, name, tree_map_only(Tensor, select, getattr(self, name)))
        return selected

    def hypotheses(self) -> Hypotheses:
        """Reconstruct the captions from the recorded words and parent indices."""
        words, chosen, weights = zip(*self._history, strict=True)
        attention = torch.stack(weights) if self._settings.attention else None
        last = None
        ancestry = torch.cat([self._past, self._own], dim=2)
        if self._finished is not None:
            last = with_unfinished(self._finished, self._scores, self._past, self._settings)
            ancestry = last.past
        found = backtrack(torch.stack(words), torch.stack(chosen), attention, ancestry, self._scores, last)
        if self._bias is None and last is None:
            return found
        return found._replace(scores=found.log_probabilities.sum(dim=-1))


def _pad(found: Hypotheses, length: int) -> Hypotheses:
    """Pad captions to a length."""
    missing = length - found.words.shape[2]
    return Hypotheses(
        words=functional.pad(found.words, (0, missing), value=Vocabulary.padding_id),
        log_probabilities=functional.pad(found.log_probabilities, (0, missing)),
        scores=found.scores,
        attention=None if found.attention is None else functional.pad(found.attention, (0, 0, 0, missing)),
    )


def backtrack(
    words: Tensor,
    log_probabilities: Tensor,
    attention: Tensor | None,
    ancestry: Tensor,
    scores: Tensor,
    finished: Finished | None = None,
) -> Hypotheses:
    """Follow each final beam back through the steps.

    Every step has a slot for each of its k rows. The slot of step t from which a beam descends is the row that step
    t's attention was computed for; the slot of step t + 1 is the row that received step t's word.

    Args:
        words, log_probabilities: (T, B, k), continuations of every step.
        attention: (T, B, k, N), attention of every step's rows; or None.
        ancestry: (B, k, (T + 1) * k) bool, True for the slots that a final beam descends from; the last k slots are the
            final beams themselves.
        scores: (B, k), scores of the final beams.
        finished: the captions, where those that have ended occupy no beam; no slot received their last words.
    """
    batch, beam_size = scores.shape
    slots = ancestry.reshape(batch, beam_size, -1, beam_size).int()  # (B, k, T + 1, k)
    rows = slots.argmax(dim=-1)
    placed = rows[:, :, 1:].permute(2, 0, 1)
    if attention is not None:
        computed = rows[:, :, :-1].permute(2, 0, 1)[..., None].expand(-1, -1, -1, attention.shape[-1])
        attention = attention.gather(2, computed).permute(1, 2, 0, 3)
    words, log_probabilities = (values.gather(2, placed).permute(1, 2, 0) for values in (words, log_probabilities))
    if finished is not None:
        computed, received = (slots.amax(dim=-1)[:, :, part] > 0 for part in (slice(0, -1), slice(1, None)))
        last_words = torch.where(computed, finished.words[..., None], Vocabulary.padding_id)
        last_chosen = torch.where(computed, finished.log_probabilities[..., None], 0.0)
        words = torch.where(received, words, last_words)
        log_probabilities = torch.where(received, log_probabilities, last_chosen)
    return Hypotheses(words, log_probabilities, scores, attention)
