"""Attributions of words to visual tokens by Integrated Gradients (Sundararajan et al., ICML 2017).

The method of M2's Sec. 4.6 and supplement A.3: which regions or grid cells made each word of a caption more probable.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.decoding.beam_search import logit_addend
from training.errors import DataError
from training.models.captioner import Captioner, Visual

POINTS = (8, 64, 512, 2048)
"""Numbers of points of the Gauss-Legendre quadrature that are tried in turn."""
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


def attribute_words(captioner: Captioner, visual: Visual, words: Tensor, search: Search) -> Attributions:
    """Integrate the gradient of each word's log probability from tokens of zeros to the tokens of an image.

    The path is a straight line. Where tokens are nearly zero, a LayerNorm makes the gradient change fast, so more
    points are taken until the attributions sum to the change of log probability (the axiom of completeness) within
    :data:`TOLERANCE`.

    Args:
        captioner: in evaluation mode, computing in float32.
        words: (T,) int64, the words of a caption without its begin token.
        search: settings of the search that found the caption; probabilities are normalised as in it.

    Raises:
        DataError: captum is not installed.
    """
    try:
        from captum.attr import IntegratedGradients
    except ImportError as error:
        raise DataError(f"attributions need captum ({error}); pip install '.[attribution]'") from None
    if not len(words):
        return Attributions(visual.tokens.new_zeros(0, *visual.tokens.shape[1:]), visual.tokens.new_zeros(0), 0.0)
    begin = words.new_full((1,), Vocabulary.begin_id)
    said = torch.cat([begin, words[:-1]])
    addend = logit_addend(search, captioner.config.vocabulary_size, words.device)
    count = len(words)
    tokens, others = visual.tokens.detach(), visual[1:]

    def log_probabilities(tokens: Tensor) -> Tensor:
        """Compute the log probabilities (n, T) of all words for n versions of the tokens."""
        several = [None if part is None else part.expand(len(tokens), *part.shape[1:]) for part in others]
        encoded = captioner.encode(Visual(tokens, *several))
        logits = captioner.decode_captions(said.expand(len(tokens), 1, count), encoded)[:, 0].float() + addend
        return functional.log_softmax(logits, dim=2).gather(2, words.expand(len(tokens), count)[..., None])[..., 0]

    with torch.no_grad():
        change = (log_probabilities(tokens) - log_probabilities(torch.zeros_like(tokens)))[0]
    method = IntegratedGradients(log_probabilities)
    inputs, targets = tokens.expand(count, *tokens.shape[1:]), torch.arange(count, device=tokens.device)
    for points in POINTS:
        channels = method.attribute(
            inputs, target=targets, n_steps=points, internal_batch_size=max(_AT_A_TIME, count)
        ).detach()
        difference = float(((channels.sum(dim=(1, 2)) - change).abs() / change.abs().clamp_min(1.0)).max())
        if difference <= TOLERANCE:
            break
    return Attributions(channels, change, difference)
