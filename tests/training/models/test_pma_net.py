"""PMA-Net: banks, refreshes, and attention to prototypes."""

import numpy as np
import pytest
import torch

from tests.tiny_model import padded_logits, tiny_captions, tiny_visual
from training.data.prefix_trees import prefix_trees
from training.models.attention import WordCache
from training.models.captioner import HookContext
from training.models.pma_net import PmaNet, PmaNetConfig

SIZES = {
    "vocabulary_size": 30, "token_width": 24, "d_model": 16, "heads": 2, "d_ff": 32, "encoder_layers": 1,
    "decoder_layers": 2, "dropout": 0.0, "prototypes": 3, "bank_steps": 4, "bank_words": 5, "neighbours": 2,
    "cluster_iterations": 20,
}  # fmt: skip


@pytest.fixture
def captioner():
    torch.manual_seed(0)
    return PmaNet(PmaNetConfig(**SIZES)).train()


def context(step, steps=10, epoch=0):
    return HookContext("any", epoch, step, steps, np.random.default_rng((epoch, step)))


def train(captioner, seed):
    """Compute the logits of a training step."""
    torch.manual_seed(seed)
    tree, _ = prefix_trees(tiny_captions(3, 2, seed).numpy())
    captioner(tiny_visual(3, 5, seed), tree)


def test_a_training_step_puts_words_into_the_bank_of_every_layer(captioner):
    for step in range(6):
        train(captioner, step)
        for memory in captioner.memories():
            assert memory.bank_count.item() == 5 * (step + 1)
            assert memory.bank_keys.any(dim=1).sum() == min(5 * (step + 1), 20)
            assert memory.bank_is_full == (step >= 3)


def test_prototypes_are_computed_twice_an_epoch_once_the_bank_is_full(captioner):
    refreshed = []
    for epoch in range(2):
        for step in range(10):
            before = captioner.memories()[1].prototype_keys.clone()
            captioner.on_step(context(step, 10, epoch))
            if not torch.equal(before, captioner.memories()[1].prototype_keys):
                refreshed.append((epoch, step))
            train(captioner, 10 * epoch + step)
    assert refreshed == [(0, 5), (1, 0), (1, 5)]


def test_prototypes_are_keys_and_values_beside_those_of_the_words(captioner):
    """Eq. 1 with the segment embeddings added to the keys, written out for one image."""
    for step in range(4):
        train(captioner, step)
    captioner.on_step(context(5))
    memory = captioner.memories()[0].eval()
    x, visible = torch.randn(1, 4, 16), torch.ones(4, 4, dtype=torch.bool).tril()
    with torch.inference_mode():
        found, cache = memory.attend_words(x, WordCache.empty(torch.zeros(1, 8), 2), visible[None, None])
        share = memory.memory_share(x, visible[None, None])
    queries = memory.query(x)[0].view(4, 2, 8)
    keys, values = memory.key(x)[0].view(4, 2, 8), memory.value(x)[0].view(4, 2, 8)
    mixed, of_prototypes, of_words = torch.zeros(4, 2, 8), torch.zeros(4), torch.zeros(4)
    for head in range(2):
        all_keys = torch.cat(
            [
                memory.prototype_keys[head] + memory.segments[head, :, 0],
                keys[:, head] + memory.segments[head, :, 1],
            ]
        )
        all_values = torch.cat([memory.prototype_values[head], values[:, head]])
        for word in range(4):
            scores = all_keys[: 3 + word + 1] @ queries[word, head] / 8**0.5
            weights = scores.softmax(0)
            mixed[word, head] = weights @ all_values[: 3 + word + 1]
            of_prototypes[word] += weights[:3].mean() / 2
            of_words[word] += weights[3:].mean() / 2
    torch.testing.assert_close(found[0], memory.output(mixed.flatten(1)), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(share[0], of_prototypes / (of_prototypes + of_words), atol=1e-5, rtol=1e-4)
    assert cache.keys.values.shape == (1, 2, 4, 8)  # words alone


def test_prototypes_do_not_count_before_they_have_been_computed(captioner):
    visual, words = tiny_visual(2, 5, seed=0), tiny_captions(2, 2, seed=0)
    captioner.eval()
    with torch.inference_mode():
        before = padded_logits(captioner, visual, words)
        for memory in captioner.memories():
            memory.prototype_keys.normal_()
            memory.prototype_values.normal_()
        torch.testing.assert_close(padded_logits(captioner, visual, words), before)
        for memory in captioner.memories():
            memory.ready.fill_(True)
        assert (padded_logits(captioner, visual, words) - before).abs().max() > 0.01
