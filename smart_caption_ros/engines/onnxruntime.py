"""ONNX Runtime: on the CPU, with CUDA, or with its TensorRT provider. Not yet run on a GPU."""

import base64
import glob
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from smart_caption_ros.engines.base import Arrays, EngineError, Graph, GraphForm, Tensor
from smart_caption_ros.files import cache_folder

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"

# y = Identity(x), float32[1]: a session of it shows which providers work.
_PROBE = base64.b64decode("CAg6NwoQCgF4EgF5IghJZGVudGl0eRIBZ1oPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCBAoAEBE=")
_WEIGHT_SUFFIXES = (".data", ".bin", ".weights", ".onnx_data")
"""Of files in which exporters store the weights of a graph."""


class OnnxRuntimeGraph:
    mode = ""

    def __init__(self, session: Any, name: str) -> None:
        self._session, self._name = session, name
        self.inputs = tuple(_tensor(entry) for entry in session.get_inputs())
        self.outputs = tuple(_tensor(entry) for entry in session.get_outputs())
        self.input_names = tuple(tensor.name for tensor in self.inputs)
        self.output_names = tuple(tensor.name for tensor in self.outputs)
        self.one_at_a_time = any(tensor.shape[:1] == (1,) for tensor in self.inputs)
        self.metadata: Mapping[str, str] = session.get_modelmeta().custom_metadata_map

    def run(self, inputs: Arrays) -> dict[str, np.ndarray]:
        try:
            return dict(zip(self.output_names, self._session.run(None, dict(inputs)), strict=True))
        except Exception as error:  # ONNX Runtime's own exceptions share no base class
            raise EngineError(f"{self._name} failed: {_first_line(error)}") from error


class OnnxRuntimeEngine:
    """ONNX Runtime with one execution provider, and the CPU for operators that the provider lacks."""

    def __init__(self, provider: str, threads: int | None = None, *, spinning: bool = True) -> None:
        """
        Args:
            provider: :data:`CPU`, :data:`CUDA` or :data:`TENSORRT`.
            threads: CPU threads inside an operator; None leaves the choice to ONNX Runtime (all cores).
            spinning: as for :func:`smart_caption_ros.engines.load_with`; between runs no thread polls.

        Raises:
            EngineError: ONNX Runtime is not installed, or a session does not get the provider.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise EngineError(f"onnxruntime cannot be imported ({error}); pip install onnxruntime") from None
        self._onnxruntime = onnxruntime
        onnxruntime.set_default_logger_severity(3)  # errors are raised; warnings would fill a node's log
        self._options = onnxruntime.SessionOptions()
        self._options.inter_op_num_threads = 1  # operators run in sequence
        # From the second run on, a memory pattern doubles the memory of all values: 0.4 GB more for Florence-2's vision
        # graph. No graph here was faster with it.
        self._options.enable_mem_pattern = False
        # Convert weights that are stored as int8 to float32 once, at loading, and not in every run.
        self._options.add_session_config_entry("session.disable_quant_qdq", "1")
        if threads is not None:
            self._options.intra_op_num_threads = threads
        # Every session has its own threads, and the sessions of a captioner run one after the other: at most `threads`
        # of them work at a time, unless those of the other sessions poll for work. ONNX Runtime's global thread pool
        # always polls when it is created from Python (docs/performance.md).
        if spinning:
            self._options.add_session_config_entry("session.force_spinning_stop", "1")
        else:
            self._options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._provider = provider
        # On the CPU the Loop form is faster, because it ends early. GPUs lack its matrix products in 8 bits; the static
        # form computes in float32.
        self.graph_forms: tuple[GraphForm, ...] = ("dynamic", "static") if provider == CPU else ("static", "dynamic")
        # get_available_providers() lists what was compiled in; a session shows what works.
        used = self._session(_PROBE).get_providers()
        if provider not in used:
            raise EngineError(f"onnxruntime {onnxruntime.__version__} has no working {provider} here")
        self.description = f"onnxruntime {onnxruntime.__version__} ({provider})"

    def load(self, path: Path, content: bytes | None = None) -> Graph:
        try:
            session = self._session_of_file(path) if content is None else self._session(content)
        except Exception as error:  # ONNX Runtime's own exceptions share no base class
            raise EngineError(f"{path} cannot be loaded by {self.description}: {_first_line(error)}") from error
        return OnnxRuntimeGraph(session, str(path))

    def _session_of_file(self, path: Path) -> Any:
        """Load a graph; from a copy if files with its weights lie beside it, such as ``yolo.onnx.data``.

        ONNX Runtime refuses weights that are links, and maps other files, so that a change of the file would change
        the graph.
        """
        beside = [file for file in path.parent.glob(f"{glob.escape(path.stem)}?*") if file.suffix in _WEIGHT_SUFFIXES]
        if beside:
            # After a failure the files themselves are tried: the graph may name others, or the disk may be full.
            with suppress(Exception), tempfile.TemporaryDirectory() as folder:
                for file in (path, *beside):
                    shutil.copyfile(file, Path(folder) / file.name)
                return self._session(str(Path(folder) / path.name))
        return self._session(str(path))

    def _session(self, model: str | bytes) -> Any:
        available = set(self._onnxruntime.get_available_providers())
        wanted = [provider for provider in dict.fromkeys([self._provider, CPU]) if provider in available]
        session = self._onnxruntime.InferenceSession(
            model, self._options, providers=wanted, provider_options=[_provider_options(name) for name in wanted]
        )
        session._model_bytes = b""  # a second copy of the weights, kept for a restart with other providers
        return session


def _provider_options(provider: str) -> dict[str, str]:
    if provider == CUDA:
        return {"use_tf32": "0"}  # decoding is bound by memory bandwidth, so full float32 precision costs no time
    if provider == TENSORRT:
        folder = cache_folder() / "onnxruntime_tensorrt"
        folder.mkdir(parents=True, exist_ok=True)
        return {
            "trt_engine_cache_enable": "1",
            "trt_engine_cache_path": str(folder),
            "trt_timing_cache_enable": "1",
            "trt_timing_cache_path": str(folder),
        }
    return {}


def _tensor(entry: Any) -> Tensor:
    kind = entry.type.removeprefix("tensor(").removesuffix(")")
    sizes = (size if isinstance(size, int) else None for size in entry.shape)  # a dynamic size has a name or None
    return Tensor(entry.name, tuple(sizes), {"float": "float32", "double": "float64"}.get(kind, kind))


def _first_line(error: Exception) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line if len(line) <= 240 else f"{line[:80]} ... {line[-150:]}"  # some list all inputs of a node
