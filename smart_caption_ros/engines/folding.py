"""A graph without what only unpacks its weights, for engines that want them as they are computed with."""

import tempfile
from pathlib import Path

from smart_caption_ros.engines.errors import EngineError

UNPACKS = b"DequantizeLinear"
"""The operator that a bundle's weights in 8 bits are unpacked by; a graph's file has its name in plain."""


def unpacked(path: Path) -> bytes:
    """The file of a graph, its weights in float32 where they are stored in 8 bits.

    TensorRT takes DequantizeLinear of weights for a request to compute in 8 bits. ONNX Runtime folds it away, and
    nothing else that would need operators of its own.

    Raises:
        EngineError: ONNX Runtime is not installed, or cannot load the graph.
    """
    content = path.read_bytes()
    if UNPACKS not in content:
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
