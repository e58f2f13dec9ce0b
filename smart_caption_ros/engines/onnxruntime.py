"""ONNX Runtime: on the CPU, with CUDA, or with its TensorRT provider.

On a GPU a static graph runs as a CUDA graph: inputs and outputs have fixed addresses in the GPU's memory, and a call
is a copy, one replay and a copy back. Capture is tried when a graph is loaded. The code for GPUs is written from the
documentation and has not yet run on a GPU.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smart_caption_ros.engines.base import Arrays, Graph, GraphForm, Tensor
from smart_caption_ros.engines.errors import EngineError
from smart_caption_ros.engines.external_data import external_locations
from smart_caption_ros.engines.page_out import page_out
from smart_caption_ros.files import cache_folder

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"

# y = Identity(x), float32[1]: a session of it shows which providers work.
_PROBE = base64.b64decode("CAg6NwoQCgF4EgF5IghJZGVudGl0eRIBZ1oPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCBAoAEBE=")
_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}


class OnnxRuntimeGraph:
    """A graph in an ONNX Runtime session."""

    def __init__(self, session: Any, name: str, mode: str = "") -> None:
        self._session, self._name, self.mode = session, name, mode
        self.inputs = tuple(_tensor(entry) for entry in session.get_inputs())
        self.outputs = tuple(_tensor(entry) for entry in session.get_outputs())
        self.input_names = tuple(tensor.name for tensor in self.inputs)
        self.output_names = tuple(tensor.name for tensor in self.outputs)
        self.one_at_a_time = any(tensor.shape[:1] == (1,) for tensor in self.inputs)
        self.metadata: Mapping[str, str] = session.get_modelmeta().custom_metadata_map

    def run(self, inputs: Arrays) -> dict[str, np.ndarray]:
        try:
            return dict(zip(self.output_names, self._run(dict(inputs)), strict=True))
        except Exception as error:  # ONNX Runtime's own exceptions share no base class
            raise EngineError(f"{self._name} failed: {_first_line(error)}") from error

    def _run(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        outputs: list[np.ndarray] = self._session.run(None, inputs)
        return outputs


class BoundOnnxRuntimeGraph(OnnxRuntimeGraph):
    """A graph whose inputs and outputs have fixed addresses in device memory, as CUDA graphs require.

    Dynamic axes are bound to 1, one frame at a time; inputs of other shapes run without the CUDA graph.
    """

    def __init__(self, onnxruntime: Any, session: Any, name: str, device: str) -> None:
        """Bind the tensors and run twice: the first run allocates memory, the second one captures.

        Raises:
            Exception: of ONNX Runtime, which cannot capture the graph.
        """
        super().__init__(session, name, "CUDA graph")
        self._not_captured = onnxruntime.RunOptions()
        self._not_captured.add_run_config_entry("gpu_graph_id", "-1")
        examples: dict[str, np.ndarray] = {
            entry.name: np.ones([axis if isinstance(axis, int) else 1 for axis in entry.shape], _DTYPES[entry.type])
            for entry in session.get_inputs()
        }
        outputs = session.run(None, examples, self._not_captured)
        place = onnxruntime.OrtValue.ortvalue_from_numpy
        self._inputs = {name: place(array, device, 0) for name, array in examples.items()}
        self._outputs = [place(array, device, 0) for array in outputs]
        self._binding = session.io_binding()
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)
        for name, value in zip(self.output_names, self._outputs, strict=True):
            self._binding.bind_ortvalue_output(name, value)
        self._shapes = {name: array.shape for name, array in examples.items()}
        for _ in range(2):
            self._run(examples)

    def _run(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        if {name: array.shape for name, array in inputs.items()} != self._shapes:
            unbound: list[np.ndarray] = self._session.run(None, inputs, self._not_captured)
            return unbound
        for name, array in inputs.items():
            self._inputs[name].update_inplace(np.ascontiguousarray(array))
        self._session.run_with_iobinding(self._binding)
        return [np.array(value.numpy()) for value in self._outputs]


class OnnxRuntimeEngine:
    """ONNX Runtime with one execution provider, and the CPU for operators that the provider lacks."""

    def __init__(self, provider: str, threads: int | None = None, *, spinning: bool = True) -> None:
        """
        Args:
            provider: :data:`CPU`, :data:`CUDA` or :data:`TENSORRT`.
            threads: CPU threads inside an operator; None leaves the choice to ONNX Runtime (all cores).
            spinning: whether threads without work poll for it during a run, which is faster and takes CPU time from
                other processes. Between runs no thread polls.

        Raises:
            EngineError: ONNX Runtime is not installed, or a session does not get the provider.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise EngineError(f"onnxruntime cannot be imported ({error}); pip install onnxruntime") from None
        self._onnxruntime = onnxruntime
        onnxruntime.set_default_logger_severity(3)  # errors are raised; warnings would only fill a node's log
        self._options = onnxruntime.SessionOptions()
        self._options.inter_op_num_threads = 1  # operators run in sequence
        # Convert weights that are stored as int8 to float32 once, at loading, and not in every run.
        self._options.add_session_config_entry("session.disable_quant_qdq", "1")
        if threads is not None:
            self._options.intra_op_num_threads = threads
        # Every session has threads of its own, and the sessions of a captioner run one after the other: at most
        # `threads` of them work at a time, as long as those of the other sessions do not poll for work. ONNX Runtime's
        # global pool for all sessions always polls when it is made from Python (docs/performance.md).
        if spinning:
            self._options.add_session_config_entry("session.force_spinning_stop", "1")
        else:
            self._options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._provider = provider
        # On the CPU the Loop form is faster, because it ends early; on a GPU a single launch is faster.
        self.graph_forms: tuple[GraphForm, ...] = ("dynamic", "static") if provider == CPU else ("static", "dynamic")
        # get_available_providers() lists what was compiled in; a session shows what works.
        used = self._session(_PROBE).get_providers()
        if provider not in used:
            raise EngineError(f"onnxruntime {onnxruntime.__version__} has no working {provider} here")
        self.description = f"onnxruntime {onnxruntime.__version__} ({provider})"

    def load(self, path: Path) -> Graph:
        mode = ""
        if self._provider == CUDA:
            try:
                session = self._session(str(path), {"enable_cuda_graph": "1"})
                return BoundOnnxRuntimeGraph(self._onnxruntime, session, str(path), "cuda")
            except Exception as error:  # ONNX Runtime's own exceptions share no base class
                mode = f"no CUDA graph: {_first_line(error)}"
        try:
            graph = OnnxRuntimeGraph(self._session(str(path)), str(path), mode)
        except Exception as error:  # as above
            raise EngineError(f"{path} cannot be loaded by {self.description}: {_first_line(error)}") from error
        page_out(path.parent / name for name in external_locations(path))
        return graph

    def _session(self, model: str | bytes, options: Mapping[str, str] | None = None) -> Any:
        available = set(self._onnxruntime.get_available_providers())
        wanted = [provider for provider in dict.fromkeys([self._provider, CPU]) if provider in available]
        given = [{**_provider_options(provider), **(options or {} if provider == CUDA else {})} for provider in wanted]
        return self._onnxruntime.InferenceSession(model, self._options, providers=wanted, provider_options=given)


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
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
