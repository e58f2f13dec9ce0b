"""Constant folding of 8-bit weights, for engines that take DequantizeLinear for a request to compute in 8 bits."""

import tempfile
from pathlib import Path

from smart_caption_ros.engines.errors import EngineError

DEQUANTIZE = b"DequantizeLinear"
"""Operator that converts stored 8-bit weights to float32; its name is plain text in a graph's file."""


def with_float32_weights(path: Path) -> bytes:
    """Read a graph's file and convert weights that are stored in 8 bits to float32.

    TensorRT takes DequantizeLinear of weights for a request to compute in 8 bits. ONNX Runtime's basic optimisations
    fold it into constants and introduce no operators of its own.

    Raises:
        EngineError: ONNX Runtime is not installed, or cannot load the graph.
    """
    content = path.read_bytes()
    if DEQUANTIZE not in content:
        return content
    try:
        import onnxruntime
    except ImportError as error:
        raise EngineError(
            f"the weights of {path} are unpacked by onnxruntime, which cannot be imported ({error})"
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / path.name
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.add_session_config_entry("session.disable_quant_qdq", "1")
        options.optimized_model_filepath = str(written)
        try:
            onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's own exceptions share no base class
            raise EngineError(f"the weights of {path} cannot be unpacked: {error}") from error
        return written.read_bytes()
