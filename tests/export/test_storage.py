"""Weights in 16 bits, and in one file for several graphs."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from export.captioner import loop_form, static_form
from export.pieces import Pieces
from export.storage import share_weights, store_as_float16
from tests.export.graphs import MAX_WORDS, ragged, run, session_of


def test_rounded_weights_stored_in_16_bit_lose_nothing(pieces: Pieces) -> None:
    graph = loop_form(pieces, MAX_WORDS)
    whole = run(session_of(graph), *ragged(7, 0))
    size = len(graph.SerializeToString())
    store_as_float16(graph)
    assert len(graph.SerializeToString()) < 0.65 * size
    halved = run(session_of(graph), *ragged(7, 0))
    np.testing.assert_array_equal(halved["words"], whole["words"])
    np.testing.assert_allclose(halved["log_probabilities"], whole["log_probabilities"], atol=1e-5)


@pytest.fixture
def shared(pieces: Pieces, tmp_path: Path) -> list[Path]:
    """Both forms, each alone and then with their weights in one file."""
    graphs = [loop_form(pieces, MAX_WORDS), static_form(pieces, MAX_WORDS, 9)]
    for name, graph in zip(("loop", "static"), graphs, strict=True):
        onnx.save(graph, str(tmp_path / f"{name}_alone.onnx"))
    share_weights(graphs, tmp_path / "weights")
    for name, graph in zip(("loop", "static"), graphs, strict=True):
        (tmp_path / f"{name}.onnx").write_bytes(graph.SerializeToString())
    return [tmp_path / "loop.onnx", tmp_path / "static.onnx"]


def test_graphs_that_share_their_weights_store_them_once(shared: list[Path]) -> None:
    folder = shared[0].parent
    alone = (folder / "loop_alone.onnx").stat().st_size
    assert (folder / "weights").stat().st_size < alone
    assert (folder / "weights").stat().st_size > 0.7 * alone


def test_graphs_that_share_their_weights_give_what_they_gave_alone(shared: list[Path]) -> None:
    for path in shared:
        onnx.checker.check_model(str(path))
        alone = onnxruntime.InferenceSession(
            str(path).replace(".onnx", "_alone.onnx"), providers=["CPUExecutionProvider"]
        )
        together = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        expected, found = (run(session, *ragged(1, 2)) for session in (alone, together))
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])
