"""No exported graph has metadata: PyTorch's exporter writes stack traces with paths of the machine."""

import onnx

from export.torch_to_onnx import clear_metadata
from smart_caption_ros.captioning.bundle import default_bundle_path


def test_neither_the_default_bundle_nor_an_exported_one_has_any(exported_bundle):
    graphs = [path for folder in (default_bundle_path(), exported_bundle) for path in folder.glob("*.onnx")]
    assert len(graphs) == 6
    for path in graphs:
        model = onnx.load(str(path))
        assert not clear_metadata(model)
        text = model.SerializeToString()
        assert b"site-packages" not in text
        assert b'.py"' not in text
