"""X-LAN and X-Transformer through both graph forms in every precision and storage.

The conformance suite compares the forms with torch in float32; these tests are about the rest.
"""

import numpy as np
import pytest
import torch

from export.captioner_graph import loop_form, static_form
from export.passes.float16 import to_float16
from export.passes.int8 import layers_of, to_int8
from export.storage import store_as_float16
from export.tensorrt import unsupported_by_tensorrt
from tests.export.graphs import MAX_WORDS, run, session_of
from tests.tiny_graphs import BEAMS, Traced, tiny_traced
from tests.tiny_model import tiny_visual
from training.decoding.beam_search import SearchSettings, beam_search

pytestmark = pytest.mark.long


@pytest.fixture(params=["x_lan", "x_transformer"])
def traced(request: pytest.FixtureRequest) -> Traced:
    return tiny_traced(request.param)


def test_float16_gives_the_captions_of_float32_in_both_forms(traced: Traced) -> None:
    halved = to_float16(traced[1])
    assert not unsupported_by_tensorrt(static_form(halved, 4, tokens=9))
    forms = [session_of(loop_form(halved, MAX_WORDS)), session_of(static_form(halved, MAX_WORDS, 9))]
    reference = session_of(loop_form(traced[1], MAX_WORDS))
    for seed in range(3):
        visual = tiny_visual(1, 9, seed)
        expected = run(reference, visual)
        for form in forms:
            found = run(form, visual)
            steps = expected["words"].shape[2]
            np.testing.assert_array_equal(found["words"][:, 0, :steps], expected["words"][:, 0])
            np.testing.assert_allclose(found["scores"][:, 0], expected["scores"][:, 0], atol=0.05)


def test_every_layer_can_be_put_in_8_bits(traced: Traced) -> None:
    captioner, graphs = traced
    layers = layers_of(graphs)
    linears = [module for module in captioner.modules() if isinstance(module, torch.nn.Linear)]
    assert sum(layers.values()) >= 0.9 * sum(linear.weight.numel() for linear in linears)
    session = session_of(loop_form(to_int8(graphs, layers, "u8"), MAX_WORDS))
    for seed in range(3):
        visual = tiny_visual(1, 9, seed)
        with torch.inference_mode():
            expected = beam_search(captioner, visual, SearchSettings(BEAMS, MAX_WORDS))
        assert run(session, visual)["scores"][0, 0] == pytest.approx(expected.scores[0, 0].item(), abs=1.0)


def test_rounded_weights_give_the_same_captions_in_16_bit_storage(traced: Traced) -> None:
    graph = loop_form(traced[1], MAX_WORDS)
    visual = tiny_visual(1, 9, seed=1)
    expected = run(session_of(graph), visual)
    store_as_float16(graph)
    assert any(node.op_type == "Cast" and node.input[0].endswith("/stored") for node in graph.graph.node)
    found = run(session_of(graph), visual)
    for name in ("words", "scores"):
        np.testing.assert_array_equal(found[name], expected[name])
