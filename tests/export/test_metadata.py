"""No exported graph has metadata: PyTorch's exporter writes stack traces with paths of the machine."""

import onnx

from export.torch_to_onnx import clear_metadata
from smart_caption_ros.captioning.bundle import default_bundle_path


def assert_no_metadata(model):
    assert not clear_metadata(model)
    text = model.SerializeToString()
    assert b"site-packages" not in text
    assert b'.py"' not in text


def graphs_of(folder):
    return [onnx.load(str(path)) for path in sorted(folder.glob("*.onnx"))]


def test_the_default_bundle_has_none():
    graphs = graphs_of(default_bundle_path())
    assert len(graphs) == 3
    for graph in graphs:
        assert_no_metadata(graph)


def test_an_exported_bundle_has_none(exported_bundle):
    for graph in graphs_of(exported_bundle):
        assert_no_metadata(graph)
