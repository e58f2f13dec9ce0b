"""SMArT and M2 compared with the published code: its encoder with a plain and a meshed decoder, random weights."""

import numpy as np
import pytest
import torch

from tests.tiny_model import padded_logits, tiny_captioner
from tests.training.models.published_m2 import load_parity_case
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.captioner import PADDING_ID, Visual

CASES = ("smart_2layer_m0", "smart_2layer_m5", "m2_2layer_m5", "m2_3layer_m5")


@pytest.fixture(params=CASES)
def parity(request, reference_dir):
    model, case = load_parity_case(str(reference_dir / "parity" / f"{request.param}.npz"))
    features = torch.from_numpy(case["features"])
    rows = torch.arange(features.shape[1])[None]
    mask = rows < torch.from_numpy(case["counts"])[:, None]
    return model, case, features, mask


@pytest.mark.needs_data
def test_teacher_forced_log_probabilities_equal_the_published_code(parity):
    model, case, features, mask = parity
    words = torch.from_numpy(case["captions"])
    with torch.inference_mode():
        ours = padded_logits(model, Visual(features, mask), words[:, None])[:, 0].log_softmax(-1).numpy()
    real = case["captions"] != PADDING_ID
    np.testing.assert_allclose(ours[real], case["tf_logprobs"][real], atol=1e-5, rtol=1e-5)


@pytest.mark.needs_data
@pytest.mark.parametrize(("beam_size", "prefix"), [(5, "beam"), (3, "beam3")])
def test_beam_search_equals_the_published_code(parity, beam_size, prefix):
    model, case, features, mask = parity
    expected = case[f"{prefix}_tokens"]
    with torch.inference_mode():
        settings = SearchSettings(beam_size, expected.shape[2], forbidden=(), stop="all")
        found = beam_search(model, Visual(features, mask), settings)
    np.testing.assert_array_equal(found.words.numpy(), expected)
    np.testing.assert_allclose(found.log_probabilities.numpy(), case[f"{prefix}_logprobs"], atol=1e-5)


def test_things_are_pooled_over_real_tokens_and_reach_every_token():
    model = tiny_captioner("smart").eval()
    tokens = torch.randn(2, 6, model.config.token_width)
    with torch.inference_mode():
        model.thing_embedding.weight.normal_()
        alone = model.thing_logits(Visual(tokens[:, :4]))
        mask = torch.tensor([[True] * 4 + [False] * 2] * 2)
        torch.testing.assert_close(model.thing_logits(Visual(tokens, mask)), alone)
        assert alone.shape == (2, model.thing_count)
        torch.testing.assert_close(
            model.thing_logits(Visual(tokens[:, [0, 0]])), model.thing_logits(Visual(tokens[:, :1]))
        )
        before = model.project_tokens(Visual(tokens))
        model.thing_projection.bias += 3
        assert ((model.project_tokens(Visual(tokens)) - before).abs().amax(dim=-1) > 1e-3).all()
