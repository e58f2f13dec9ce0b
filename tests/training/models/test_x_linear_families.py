"""X-LAN and X-Transformer compared with the published code, with random weights."""

import numpy as np
import pytest
import torch

from export.import_checkpoint.x_linear import read_x_lan, read_x_transformer
from tests.tiny_model import padded_logits
from tests.training.models.published_x_linear import NEVER_CHOSEN, ParityCase
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.x_lan import XLan
from training.models.x_transformer import XTransformer

PUBLISHED = {"xlan.npz": (XLan, read_x_lan), "xtransformer.npz": (XTransformer, read_x_transformer)}
"""Family and reader of each parity case."""


@pytest.fixture(scope="module", params=PUBLISHED)
def parity(request, reference_dir):
    family, read = PUBLISHED[request.param]
    case = ParityCase(reference_dir / "parity" / request.param)
    model = case.captioner(read)
    assert isinstance(model, family)
    return model, case


@pytest.mark.needs_data
def test_teacher_forced_log_probabilities_equal_the_published_code(parity):
    model, case = parity
    with torch.inference_mode():
        found = padded_logits(model, case.visual(), case.inputs())[:, 0].log_softmax(-1)[..., case.ours].numpy()
    expected = torch.from_numpy(case["tf_logits"]).log_softmax(-1).numpy()
    np.testing.assert_allclose(found[case.real()], expected[case.real()], atol=1e-5, rtol=1e-5)


@pytest.mark.needs_data
@pytest.mark.parametrize("beam_size", [5, 3, 2, 1])
def test_beam_search_equals_the_published_code(parity, beam_size):
    model, case = parity
    expected = case.beams(f"beam{beam_size}_tokens" if beam_size > 1 else "greedy_tokens")
    with torch.inference_mode():
        settings = SearchSettings(beam_size, expected.shape[1], forbidden=NEVER_CHOSEN, stop="all")
        found = beam_search(model, case.visual(), settings)
    np.testing.assert_array_equal(found.words[:, 0].numpy(), expected)
    if beam_size > 1:
        np.testing.assert_allclose(found.log_probabilities[:, 0].numpy(), case[f"beam{beam_size}_logprobs"], atol=1e-5)
