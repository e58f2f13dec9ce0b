"""The captioner graph against a plain torch beam search that shares no code with it."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from export.captioner import export_captioner
from export.storage import round_to_float16, store_as_float16
from tests.plain_beam_search import plain_beam_search
from tests.tiny_model import tiny_smart
from training.models.smart import Smart

MAX_WORDS = 12


def session_of(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(session: onnxruntime.InferenceSession, tokens: torch.Tensor, mask: torch.Tensor) -> dict[str, np.ndarray]:
    outputs = session.run(None, {"tokens": tokens.numpy(), "token_mask": mask.numpy()})
    return dict(zip((output.name for output in session.get_outputs()), outputs, strict=True))


def ragged(batch: int, seed: int, length: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    counts = torch.randint(1, length + 1, (batch, 1))
    counts[0] = length
    return torch.randn(batch, length, 24) * 2, torch.arange(length)[None] < counts


@pytest.fixture(scope="module", params=[(5, 2), (1, 2), (3, 1)], ids=lambda p: f"beam{p[0]}-layers{p[1]}")
def exported(request: pytest.FixtureRequest) -> tuple[Smart, int, onnxruntime.InferenceSession]:
    beam_size, layers = request.param
    model = tiny_smart(encoder_layers=layers, decoder_layers=layers)
    return model, beam_size, session_of(export_captioner(model, beam_size, MAX_WORDS))


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("seed", range(4))
def test_best_captions_and_log_probabilities_equal_a_plain_beam_search(
    exported: tuple[Smart, int, onnxruntime.InferenceSession], batch: int, seed: int
) -> None:
    model, beam_size, session = exported
    tokens, mask = ragged(batch, seed)
    found = run(session, tokens, mask)
    for image in range(batch):
        expected = plain_beam_search(model, tokens[image], mask[image], beam_size, MAX_WORDS)
        words, log_probabilities = expected[0].words, expected[0].log_probabilities
        assert found["words"][image, 0, : len(words)].tolist() == words
        assert not found["words"][image, 0, len(words) :].any()
        np.testing.assert_allclose(found["log_probabilities"][image, 0, : len(words)], log_probabilities, atol=1e-4)
        assert found["scores"][image, 0] == pytest.approx(sum(log_probabilities), abs=1e-4)


def test_the_loop_ends_when_the_best_caption_has_ended(
    exported: tuple[Smart, int, onnxruntime.InferenceSession],
) -> None:
    _, _, session = exported
    lengths = {run(session, *ragged(1, seed))["words"].shape[2] for seed in range(12)}
    assert len(lengths) > 1
    assert max(lengths) <= MAX_WORDS


def test_attention_is_a_distribution_over_the_tokens_that_are_there(
    exported: tuple[Smart, int, onnxruntime.InferenceSession],
) -> None:
    _, _, session = exported
    tokens, mask = ragged(7, 1)
    attention = run(session, tokens, mask)["attention"]
    np.testing.assert_allclose(attention.sum(axis=-1), 1, atol=1e-5)
    hidden = np.broadcast_to(~mask.numpy()[:, None, None, :], attention.shape)
    assert attention[hidden].max() == 0


def test_weights_stored_in_16_bit_give_what_the_rounded_model_gives() -> None:
    model = tiny_smart(vocabulary_size=500, d_model=64, d_ff=256)
    round_to_float16(model)
    graph = export_captioner(model, 5, MAX_WORDS)
    whole = run(session_of(graph), *ragged(7, 0))
    size = len(graph.SerializeToString())
    store_as_float16(graph)
    assert len(graph.SerializeToString()) < 0.65 * size
    halved = run(session_of(graph), *ragged(7, 0))
    np.testing.assert_array_equal(halved["words"], whole["words"])
    np.testing.assert_allclose(halved["log_probabilities"], whole["log_probabilities"], atol=1e-5)


def test_the_graph_uses_standard_operators_alone(tmp_path: Path) -> None:
    graph = export_captioner(tiny_smart(), 5, MAX_WORDS)
    assert {opset.domain for opset in graph.opset_import} == {""}
    onnx.checker.check_model(graph, full_check=True)
