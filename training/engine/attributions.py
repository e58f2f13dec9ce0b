"""Attributions of words to visual tokens by Integrated Gradients (Sundararajan et al., ICML 2017).

The method of M2's Sec. 4.6 and supplement A.3: which regions or grid cells made each word of a caption more probable.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.decoding.beam_search import SearchSettings
from training.errors import DataError
from training.models.captioner import Captioner, Visual

POINTS = 8
"""Points of the Gauss-Legendre quadrature on each part of the path."""
MOST_PARTS = 256
"""Parts into which the path is divided at most."""
TOLERANCE = 0.01
"""Largest difference between the sum of a word's attributions and its change of log probability, as a share of the
change, or of 1 where the change is smaller."""
_AT_A_TIME = 256
"""Inputs of a forward pass."""


class Attributions(NamedTuple):
    """Attributions of the T words of a caption, its end token included, to the N visual tokens of an image."""

    channels: Tensor
    """(T, N, token width) float32, natural logarithm: the share of each feature in ``change``."""
    change: Tensor
    """(T,) float32, log probability of each word with the image minus that with tokens of zeros."""
    points: int
    """Points of the path at which gradients were computed."""
    error: float
    """Largest difference between a word's sum of ``channels`` and its ``change``, as a share as in
    :data:`TOLERANCE`."""

    def of_words(self, places: Sequence[Sequence[int]]) -> "Attributions":
        """Sum the attributions of the pieces of each word; ``places`` are those of a word each."""
        if not places:
            return self
        return self._replace(
            channels=torch.stack([self.channels[list(pieces)].sum(dim=0) for pieces in places]),
            change=torch.stack([self.change[list(pieces)].sum() for pieces in places]),
        )

    def regions(self) -> Tensor:
        """Average over the channels and divide by the size of the sum over the tokens, (T, N).

        The paper divides by the sum itself, which turns the order of the regions round where it is negative.
        """
        means = self.channels.mean(dim=2)
        return means / means.sum(dim=1, keepdim=True).abs().clamp_min(torch.finfo(means.dtype).tiny)


class _Part(NamedTuple):
    """A part of the path."""

    start: float
    end: float
    channels: Tensor
    """(T, N, token width) attributions on the part."""
    errors: Tensor
    """(T,) differences from completeness, each divided by the size of the word's change on the whole path."""


def attribute_words(captioner: Captioner, visual: Visual, words: Tensor) -> Attributions:
    """Integrate the gradient of each word's log probability from tokens of zeros to the tokens of an image.

    The path is a straight line. Where tokens are nearly zero, a LayerNorm makes the gradient change fast, so the part
    of the line with the largest error is halved until the attributions sum to the change of log probability (the
    axiom of completeness) within :data:`TOLERANCE`.

    Args:
        captioner: in evaluation mode, computing in float32. Probabilities are normalised as in its beam search.
        words: (T,) int64, the words of a caption without its begin token.

    Raises:
        DataError: captum is not installed.
    """
    try:
        from captum.attr import IntegratedGradients
    except ImportError as error:
        raise DataError(f"attributions need captum ({error}); pip install '.[attribution]'") from None
    if not len(words):
        return Attributions(visual.tokens.new_zeros(0, *visual.tokens.shape[1:]), visual.tokens.new_zeros(0), 0, 0.0)
    begin = words.new_full((1,), Vocabulary.begin_id)
    said = torch.cat([begin, words[:-1]])
    forbidden = list(SearchSettings.forbidden)
    count = len(words)
    tokens, others = visual.tokens.detach(), visual[1:]

    def log_probabilities(tokens: Tensor) -> Tensor:
        """Compute the log probabilities (n, T) of all words for n versions of the tokens."""
        several = [None if part is None else part.expand(len(tokens), *part.shape[1:]) for part in others]
        encoded = captioner.encode(Visual(tokens, *several))
        logits = captioner.decode_captions(said.expand(len(tokens), 1, count), encoded)[:, 0].float()
        logits = logits.index_fill(2, torch.tensor(forbidden, device=logits.device), -torch.inf)
        return functional.log_softmax(logits, dim=2).gather(2, words.expand(len(tokens), count)[..., None])[..., 0]

    method = IntegratedGradients(log_probabilities)
    inputs, targets = tokens.expand(count, *tokens.shape[1:]), torch.arange(count, device=tokens.device)

    def changes(start: float, end: float) -> Tensor:
        with torch.no_grad():
            return (log_probabilities(end * tokens) - log_probabilities(start * tokens))[0]

    change = changes(0.0, 1.0)
    size = change.abs().clamp_min(1.0)

    def integrate(start: float, end: float) -> _Part:
        channels = method.attribute(
            end * inputs, start * inputs, targets, n_steps=POINTS, internal_batch_size=max(_AT_A_TIME, count)
        ).detach()
        return _Part(start, end, channels, (channels.sum(dim=(1, 2)) - changes(start, end)) / size)

    def is_complete() -> bool:
        errors = torch.stack([part.errors for part in parts])
        # Errors of opposite signs may cancel out by chance, and many of one sign may add up.
        return bool(torch.maximum(errors.norm(dim=0), errors.sum(dim=0).abs()).max() <= TOLERANCE)

    parts, points = [integrate(0.0, 1.0)], POINTS
    while len(parts) < MOST_PARTS and not is_complete():
        worst = parts.pop(max(range(len(parts)), key=lambda place: float(parts[place].errors.abs().max())))
        middle = (worst.start + worst.end) / 2
        parts += [integrate(worst.start, middle), integrate(middle, worst.end)]
        points += 2 * POINTS
    channels = torch.stack([part.channels for part in parts]).sum(dim=0)
    difference = (channels.sum(dim=(1, 2)) - change).abs() / size
    return Attributions(channels, change, points, float(difference.max()))
