"""Two epochs on 64 images halve the loss of every family."""

import pytest
import torch

from tests.tiny_model import TINY_SIZES, TOKEN_WIDTH
from training.data.prefix_trees import prefix_trees
from training.models import FAMILIES
from training.models.captioner import Captioner, Visual

IMAGES, BATCH, EPOCHS = 64, 4, 2


def images_and_captions() -> tuple[Visual, torch.Tensor]:
    """Images of four kinds, whose first tokens say which of four captions they have."""
    random = torch.Generator().manual_seed(0)
    kinds = torch.arange(IMAGES) % 4
    tokens = torch.randn(IMAGES, 5, TOKEN_WIDTH, generator=random) + torch.eye(4, TOKEN_WIDTH)[kinds][:, None] * 4
    boxes = torch.rand(IMAGES, 5, 2, 2, generator=random).sort(dim=2).values.flatten(2)
    captions = torch.randint(4, 30, (4, 8), generator=random)
    captions[:, 0], captions[:, -1] = 1, 2
    return Visual(tokens, None, boxes), captions[kinds][:, None]


def train(captioner: Captioner) -> list[float]:
    """Train by cross-entropy and return the loss of every step."""
    visual, captions = images_and_captions()
    order = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(captioner.parameters(), lr=1e-2)
    losses = []
    for _ in range(EPOCHS):
        for images in torch.randperm(IMAGES, generator=order).split(BATCH):
            tree, next_words = prefix_trees(captions[images].numpy())
            part = Visual(*(None if field is None else field[images] for field in visual))
            chosen = next_words.select(captioner(part, tree).flatten(0, 1).log_softmax(-1))
            loss = -(chosen * next_words.weights).sum() / next_words.weights.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@pytest.mark.parametrize("family", FAMILIES)
def test_two_epochs_on_64_images_halve_the_loss(family: str) -> None:
    torch.manual_seed(0)
    kind = FAMILIES[family]
    config = kind.Config(vocabulary_size=30, token_width=TOKEN_WIDTH, **TINY_SIZES.get(family, {}))
    losses = train(kind(config).train())
    assert losses[0] > 2
    assert losses[-1] < losses[0] / 2
