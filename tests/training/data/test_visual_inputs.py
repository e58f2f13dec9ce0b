"""Batches of visual tokens: padding is seen by nobody."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny_model import tiny_smart
from training.data.region_features import Regions
from training.data.visual_inputs import VisualBatch, pad_regions
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.captioner import Visual

WIDTH = 24


def batch_of(*counts: int) -> VisualBatch:
    random = np.random.default_rng(0)
    features = [random.normal(size=(count, WIDTH)).astype(np.float32) for count in counts]
    return pad_regions([Regions(found, None, None) for found in features])


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_the_mask_tells_regions_from_padding(counts: list[int]) -> None:
    batch = batch_of(*counts)
    assert batch.values.shape == (len(counts), max(counts), WIDTH)
    if len(set(counts)) == 1:
        assert batch.mask is None
    else:
        assert batch.mask is not None
        assert batch.mask.sum(dim=1).tolist() == counts
        assert not batch.values[~batch.mask].any()
        assert batch.values[batch.mask].any(dim=-1).all()


def test_an_image_is_captioned_alike_alone_and_padded_in_a_batch() -> None:
    model, batch = tiny_smart(WIDTH), batch_of(3, 11, 7)
    words = torch.tensor([[[1, 8, 9, 10]]])
    with torch.inference_mode():
        together = beam_search(model, Visual(batch.values, batch.mask), SearchSettings(3, 8))
        logits = model(Visual(batch.values, batch.mask), words.expand(3, -1, -1))
        for index, count in enumerate((3, 11, 7)):
            alone = Visual(batch.values[index : index + 1, :count])
            found = beam_search(model, alone, SearchSettings(3, 8))
            steps = found.words.shape[-1]
            assert together.words[index, 0, :steps].tolist() == found.words[0, 0].tolist()
            torch.testing.assert_close(together.scores[index, 0], found.scores[0, 0], atol=1e-4, rtol=1e-5)
            torch.testing.assert_close(logits[index], model(alone, words)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("counts", [(2, 5), (5, 5)])
def test_the_gradient_does_not_reach_padding(counts: tuple[int, ...]) -> None:
    model, batch = tiny_smart(WIDTH), batch_of(*counts)
    tokens = batch.values.requires_grad_()
    model(Visual(tokens, batch.mask), torch.tensor([[[1, 8]]]).expand(2, -1, -1)).square().sum().backward()
    assert tokens.grad is not None
    for gradient, count in zip(tokens.grad, counts, strict=True):
        assert gradient[:count].any(dim=-1).all()
        assert not gradient[count:].any()
