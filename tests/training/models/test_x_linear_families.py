"""X-LAN and X-Transformer compared with the published code, with random weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from export.import_checkpoint.published import PublishedFormat
from export.import_checkpoint.x_linear import read_x_lan, read_x_transformer
from tests.tiny_model import padded_logits
from tests.training.models.published_x_linear import NEVER_CHOSEN, ParityCase
from training.decoding.beam_search import SearchSettings, beam_search
from training.models.x_lan import XLan
from training.models.x_transformer import XTransformer

SIZES = {"vocabulary_size": 30, "token_width": 12, "d_model": 16, "heads": 4, "attention_units": 3}


@dataclass(frozen=True)
class Published:
    """A family and its parity case."""

    family: type[XLan | XTransformer]
    read: PublishedFormat
    case: str
    parameters: int
    """Of the published sizes."""
    sizes: dict[str, Any]
    """Of a small captioner."""


PUBLISHED = {
    "x_lan": Published(XLan, read_x_lan, "xlan.npz", 75_189_781, SIZES),
    "x_transformer": Published(
        XTransformer, read_x_transformer, "xtransformer.npz", 137_521_826, {**SIZES, "d_ff": 32}
    ),
}


@pytest.fixture(params=list(PUBLISHED))
def published(request):
    return PUBLISHED[request.param]


@pytest.fixture(scope="module", params=list(PUBLISHED))
def parity(request, reference_dir):
    published = PUBLISHED[request.param]
    case = ParityCase(reference_dir / "parity" / published.case)
    model = case.captioner(published.read)
    assert isinstance(model, published.family)
    return model, case


@pytest.mark.needs_data
def test_the_encoder_equals_the_published_code(parity):
    model, case = parity
    with torch.inference_mode():
        whole, regions = model.encode_regions(case.visual())
    np.testing.assert_allclose(whole[:, 0].numpy(), case["enc_global"], atol=1e-5)
    real = case["mask"] > 0
    np.testing.assert_allclose(regions.numpy()[real], case["enc_regions"][real], atol=1e-5)


@pytest.mark.needs_data
def test_teacher_forced_log_probabilities_equal_the_published_code(parity):
    model, case = parity
    with torch.inference_mode():
        found = padded_logits(model, case.visual(), case.inputs())[:, 0].log_softmax(-1)[..., case.ours].numpy()
    expected = torch.from_numpy(case["tf_logits"]).log_softmax(-1).numpy()
    np.testing.assert_allclose(found[case.real()], expected[case.real()], atol=1e-5, rtol=1e-5)


@pytest.mark.needs_data
@pytest.mark.parametrize("beam_size", [5, 3, 2])
def test_beam_search_equals_the_published_code(parity, beam_size):
    model, case = parity
    expected = case.beams(f"beam{beam_size}_tokens")
    with torch.inference_mode():
        settings = SearchSettings(beam_size, expected.shape[1], forbidden=NEVER_CHOSEN, stop="all")
        found = beam_search(model, case.visual(), settings)
    np.testing.assert_array_equal(found.words[:, 0].numpy(), expected)
    np.testing.assert_allclose(found.log_probabilities[:, 0].numpy(), case[f"beam{beam_size}_logprobs"], atol=1e-5)


@pytest.mark.needs_data
def test_a_beam_of_one_equals_the_published_greedy_decoding(parity):
    model, case = parity
    expected = case.beams("greedy_tokens")
    with torch.inference_mode():
        settings = SearchSettings(1, expected.shape[1], forbidden=NEVER_CHOSEN, stop="all")
        found = beam_search(model, case.visual(), settings)
    np.testing.assert_array_equal(found.words[:, 0].numpy(), expected)
