"""The gradient of self-critical training compared with finite differences."""

from itertools import product

import numpy as np
import pytest
import torch

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import padded_logits, tiny_smart
from training.evaluation.metrics.cider_d import CiderD
from training.models.captioner import Visual
from training.objectives.self_critical import self_critical_loss

# The words allowed in the exact case: the end token, 4 and 5. At most three words: 1 + 2 + 4 + 8 captions.
ALPHABET = (Vocabulary.end_id, 4, 5)
LONGEST = 3


def all_captions():
    """List all captions of the alphabet, (15, LONGEST), padded after the end token."""
    rows = []
    for words in product(ALPHABET, repeat=LONGEST):
        if Vocabulary.end_id in words:
            end = words.index(Vocabulary.end_id)
            words = (*words[: end + 1], *[0] * (LONGEST - end - 1))
        rows.append(words)
    return torch.tensor(sorted(set(rows)))


def exact_case():
    """Make a model in double precision, tokens (1, N, width), all captions (15, T) and their CIDEr-D (15,)."""
    model = tiny_smart(token_width=6, vocabulary_size=16, d_model=8, heads=2, d_ff=8, memory_slots=2).double()
    with torch.no_grad():
        model.word_projection.weight *= 0.3  # every word is possible
    corpus = [[[4, 5], [5, 5, 4]], [[4, 4], [7]], [[8, 5]]]
    captions = all_captions()
    rewards = CiderD(corpus, end_token=True).score(np.array([0]), captions.numpy()[None])[0]
    assert len(np.unique(rewards.round(6))) > 5
    torch.manual_seed(1)
    return model, torch.randn(1, 4, 6).double(), captions, torch.from_numpy(rewards)


def log_probabilities(model, tokens, captions):
    """Compute log probabilities (n, T) by teacher forcing among the alphabet, 0 after the end token."""
    begin = torch.full((len(captions), 1), Vocabulary.begin_id)
    logits = padded_logits(model, Visual(tokens), torch.cat([begin, captions[:, :-1]], dim=1)[None])[0]
    outside = torch.ones(logits.shape[-1], dtype=torch.bool)
    outside[list(ALPHABET)] = False
    logs = logits.masked_fill(outside, -torch.inf).log_softmax(-1)
    return logs.gather(-1, captions[..., None])[..., 0].masked_fill(captions == 0, 0.0)


def gradient(model, loss):
    parts = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return torch.cat([
        (torch.zeros_like(p) if part is None else part).flatten()
        for part, p in zip(parts, model.parameters(), strict=True)
    ])  # fmt: skip


def test_over_all_samples_the_gradient_is_that_of_the_expected_reward_by_finite_differences():
    model, tokens, captions, rewards = exact_case()
    k = 2

    def expected_reward():
        probabilities = log_probabilities(model, tokens, captions).sum(-1).exp()
        assert probabilities.sum().item() == pytest.approx(1.0, abs=1e-12)
        return (probabilities * rewards).sum()

    logs = log_probabilities(model, tokens, captions)
    probabilities = logs.detach().sum(-1).exp()
    # Every pair of samples, weighted with its probability: the expectation, exactly.
    mean = torch.zeros((), dtype=torch.float64)
    for pair in product(range(len(captions)), repeat=k):
        chosen = list(pair)
        loss = self_critical_loss(logs[chosen][None], rewards[chosen][None])
        mean = mean + probabilities[chosen].prod() * loss
    found = gradient(model, mean)
    random = torch.Generator().manual_seed(0)
    flat = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    for _ in range(5):
        direction = torch.randn(len(flat), generator=random, dtype=torch.float64)
        step = 1e-5
        values = []
        for sign in (1, -1):
            torch.nn.utils.vector_to_parameters(flat + sign * step * direction, model.parameters())
            with torch.no_grad():
                values.append(expected_reward().item())
        torch.nn.utils.vector_to_parameters(flat, model.parameters())
        difference = (values[0] - values[1]) / (2 * step)
        assert abs(difference) > 1e-3
        assert (found @ direction).item() == pytest.approx(-(k - 1) / (k * LONGEST) * difference, rel=1e-6, abs=1e-9)
