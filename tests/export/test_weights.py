"""Weights that are files while a bundle is made, as those of large models are."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from export import weights
from export.bundle import write_graph
from export.captioner_graph import loop_form, static_form
from export.import_checkpoint.__main__ import main as import_checkpoint
from export.passes.int8 import layers_of, to_int8
from export.storage import round_to_float16, share_weights, store_as_float16
from export.trace import trace_captioner
from smart_caption_ros.captioning import Bundle, Captioner
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, VISION_GRAPH
from smart_caption_ros.captioning.search import Search
from tests.export.graphs import MAX_WORDS, ragged, run, session_of
from tests.frames import blobs
from tests.published_folders import write_published
from tests.tiny_model import tiny_smart


@pytest.fixture
def outside(monkeypatch):
    """Weights of all graphs become files."""
    monkeypatch.setattr(weights, "MOST_INSIDE", 0)


def files_of(graph):
    return [entry.value for tensor in graph.initializer for entry in tensor.external_data]


@pytest.fixture(scope="module")
def traced_outside():
    """What the fixture ``traced`` is, with its weights in files."""
    model = tiny_smart(vocabulary_size=200, d_model=64, d_ff=256, encoder_layers=1, decoder_layers=1)
    round_to_float16(model)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(weights, "MOST_INSIDE", 0)
        return trace_captioner(model, Search(3))


@pytest.mark.parametrize("in_8_bits", [False, True], ids=["float32", "int8"])
def test_a_graph_whose_weights_were_files_computes_what_it_would_with_its_weights_inside(
    in_8_bits, traced, traced_outside, outside, tmp_path
):
    pieces = [to_int8(found, layers_of(found)) if in_8_bits else found for found in (traced, traced_outside)]
    assert all(files_of(piece.graph) for piece in (pieces[1].start, pieces[1].step))
    found = []
    for number, piece in enumerate(pieces):
        graph = loop_form(piece, MAX_WORDS)
        assert files_of(graph.graph)
        store_as_float16(graph)
        write_graph(tmp_path / f"{number}.onnx", graph)
        whole = onnx.load_model(tmp_path / f"{number}.onnx", load_external_data=False)
        assert not files_of(whole.graph)
        found.append(run(session_of(whole), ragged(2, 0)))
    for name, values in found[0].items():
        np.testing.assert_array_equal(found[1][name], values)


def test_forms_whose_weights_are_files_share_them(traced_outside, outside):
    graphs = [loop_form(traced_outside, MAX_WORDS), static_form(traced_outside, MAX_WORDS, 9)]
    names = [tensor.name for tensor in graphs[0].graph.initializer if tensor.external_data]
    shared = share_weights(graphs)
    assert {tensor.name for tensor in shared.graph.initializer} >= set(names)
    assert len(shared.graph.initializer) < 1.2 * len(names)
    assert not any(files_of(graph.graph) for graph in graphs)


def quantisable(model):
    """Products in float32 with a constant matrix, of a graph or of a loop in it."""
    graphs = [model.graph, *(loop.g for node in model.graph.node for loop in node.attribute if loop.HasField("g"))]
    nodes = [node for graph in graphs for node in graph.node]
    matrices = {tensor.name for graph in graphs for tensor in graph.initializer if len(tensor.dims) == 2}
    matrices |= {node.output[0] for node in nodes if node.op_type == "Cast" and node.input[0] in matrices}
    return [node.name for node in nodes if node.op_type == "MatMul" and node.input[1] in matrices]


@pytest.mark.long
def test_a_captioner_imported_in_8_bits_computes_all_layers_so_whether_its_weights_were_files_or_inside(
    tmp_path, monkeypatch
):
    write_published(tmp_path / "model", "git")
    (tmp_path / "model" / "generation_config.json").write_text(json.dumps({"num_beams": 3, "max_length": 10}))
    said = []
    for limit in (weights.MOST_INSIDE, 0):
        monkeypatch.setattr(weights, "MOST_INSIDE", limit)
        bundle = tmp_path / f"bundle_{limit}"
        arguments = ["git", tmp_path / "model", "-o", bundle, "--precision", "int8", "--check-images", 2]
        monkeypatch.setattr("sys.argv", ["import_checkpoint", *map(str, arguments)])
        assert import_checkpoint() == 0
        captioner = Captioner.from_bundle(bundle, engine="onnxruntime-cpu", threads=1)
        captions = [captioner.caption(blobs(seed, 48, 64)) for seed in range(4)]
        said.append([[(word.text, word.log_probability) for word in caption.words] for caption in captions])
    assert said[0] == said[1]
    assert list(Path(weights._folder().name).iterdir())
    loaded = Bundle.load(bundle)
    precision = loaded.manifest["precision"]["int8"]
    assert (precision["layers"], precision["share_of_weights"]) == (len(precision["int8_layers"]), 1.0)
    for name in (VISION_GRAPH, CAPTIONER_GRAPH):
        assert not quantisable(onnx.load_model_from_string(loaded.read_graph(name)))
    assert loaded.static_graph is None  # TensorRT has no products in 8 bits, as the vision graph's are
