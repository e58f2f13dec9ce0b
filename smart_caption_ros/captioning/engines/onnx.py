"""ONNX Runtime, on the CPU or with CUDA."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smart_caption_ros.captioning.engines.base import Graph, Tensor
from smart_caption_ros.captioning.errors import EngineError

# y = Identity(x), float32[1]: enough to see which provider a session really gets.
_PROBE = base64.b64decode("CAg6NwoQCgF4EgF5IghJZGVudGl0eRIBZ1oPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCBAoAEBE=")


class OnnxRuntimeGraph:
    """A graph in an ONNX Runtime session."""

    def __init__(self, session: Any, name: str) -> None:
        self._session, self._name = session, name
        self.inputs = tuple(_tensor(entry) for entry in session.get_inputs())
        self.outputs = tuple(_tensor(entry) for entry in session.get_outputs())
        self.input_names = tuple(tensor.name for tensor in self.inputs)
        self.output_names = tuple(tensor.name for tensor in self.outputs)
        self.metadata: Mapping[str, str] = session.get_modelmeta().custom_metadata_map

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            outputs = self._session.run(None, dict(inputs))
        except Exception as error:  # ONNX Runtime's own exceptions share no base class
            raise EngineError(f"{self._name} failed: {_first_line(error)}") from error
        return dict(zip(self.output_names, outputs, strict=True))


class OnnxRuntimeEngine:
    """ONNX Runtime with one execution provider (and the CPU for what that provider lacks)."""

    def __init__(self, provider: str, threads: int | None = None) -> None:
        """
        Args:
            provider: e.g. ``CPUExecutionProvider``.
            threads: CPU threads inside an operator; None leaves the choice to ONNX Runtime (all cores).

        Raises:
            EngineError: ONNX Runtime is not installed, or a session does not get the provider.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise EngineError(f"onnxruntime cannot be imported ({error}); pip install onnxruntime") from None
        self._onnxruntime = onnxruntime
        onnxruntime.set_default_logger_severity(3)  # what matters is raised; the rest is noise in a node's log
        self._options = onnxruntime.SessionOptions()
        if threads is not None:
            self._options.intra_op_num_threads = threads
        self._providers = list(dict.fromkeys([provider, "CPUExecutionProvider"]))
        # The list of available providers names what was compiled in; only a session tells what works.
        used = self._session(_PROBE).get_providers()
        if provider not in used:
            raise EngineError(f"onnxruntime {onnxruntime.__version__} has no working {provider} here")
        self.description = f"onnxruntime {onnxruntime.__version__} ({provider})"

    def load(self, path: Path) -> Graph:
        try:
            return OnnxRuntimeGraph(self._session(str(path)), str(path))
        except Exception as error:  # as above
            raise EngineError(f"{path} cannot be loaded by {self.description}: {_first_line(error)}") from error

    def _session(self, model: str | bytes) -> Any:
        available = set(self._onnxruntime.get_available_providers())
        wanted = [provider for provider in self._providers if provider in available]
        return self._onnxruntime.InferenceSession(model, self._options, providers=wanted)


def _tensor(entry: Any) -> Tensor:
    kind = entry.type.removeprefix("tensor(").removesuffix(")")
    sizes = (size if isinstance(size, int) else None for size in entry.shape)  # an open size has a name or None
    return Tensor(entry.name, tuple(sizes), {"float": "float32", "double": "float64"}.get(kind, kind))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
