"""Scheduled sampling (Bengio et al., NeurIPS 2015): some input words are drawn from the captioner's own predictions.

The schedule and the way of sampling are those of X-LAN's published code.
"""

import torch
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.configs.schema import ScheduledSamplingConfig
from training.data.prefix_trees import NextWords
from training.decoding.beam_search import excluded_words
from training.models.captioner import PADDING_ID, Captioner, Encoded


def sampling_probability(schedule: ScheduledSamplingConfig, epoch: int) -> float:
    """Compute the probability that an input word is sampled.
    ``epoch``: epochs of the phase that are done.
    """
    increases = max(0, (epoch - 1 - schedule.start) // schedule.every)
    return min(schedule.maximum, schedule.increase * increases)


def decode_with_samples(captioner: Captioner, encoded: Encoded, captions: Tensor, probability: float) -> Tensor:
    """Compute the logits of captions some of whose words are replaced by samples, word by word.

    Each word after the begin token is replaced with the given probability by a word drawn from the prediction at its
    place. No gradient passes through the draw.

    Args:
        captions: (B, G, T) int64, begin token and words, padded.
        probability: in [0, 1].

    Returns:
        (B, G, T, V); position t predicts word t + 1.
    """
    batch, group, length = captions.shape
    device = captions.device
    own = torch.eye(group, dtype=torch.bool, device=device).expand(batch, -1, -1)
    past, state, steps = own[:, :, :0], captioner.initial_state(encoded, group), list[Tensor]()
    never = excluded_words(captioner.config.vocabulary_size, (PADDING_ID, Vocabulary.begin_id), device)
    for position in range(length):
        words = captions[..., position]
        if position:
            predicted = (steps[-1].detach().float() + never).softmax(dim=-1)
            drawn = torch.multinomial(predicted.flatten(0, 1), 1).view(batch, group)
            words = torch.where(torch.rand(batch, group, device=device) < probability, drawn, words)
        step = captioner.decode(words[..., None], position, past, state, encoded, attention=False)
        steps.append(step.logits[:, :, 0])
        state, past = step.state, torch.cat([past, own], dim=2)
    return torch.stack(steps, dim=2)


def next_words_of_captions(next_words: NextWords) -> NextWords:
    """Arrange the next words of prefix trees for the logits of padded captions, (B, G * T, V).

    Captions of an image that share a prefix are separate again, because their sampled words differ. The captions of an
    image must have equal weights.
    """
    places = next_words.places.flatten()
    nodes = (places < len(next_words.words)).nonzero()[:, 0]
    pairs = places[nodes]
    captions_of_pair = torch.bincount(pairs, minlength=len(next_words.words))
    weights = (next_words.weights / captions_of_pair)[pairs]
    numbers = torch.full_like(places, len(nodes))
    numbers[nodes] = torch.arange(len(nodes), device=places.device)
    return NextWords(nodes, next_words.words[pairs], weights, numbers.view(next_words.places.shape))
