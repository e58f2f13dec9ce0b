"""TensorRT without ONNX Runtime, through the API common to versions 10.3 and 11.

Networks are strongly typed: the ONNX file alone sets the precision. An engine is built once for a graph, a TensorRT
version and a GPU, cached on disk, and runs as a CUDA graph. Written from the documentation of TensorRT and of
cuda-python 12 and 13; not yet run with TensorRT itself (docs/performance.md).
"""

import json
import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import numpy as np

from smart_caption_ros import __version__
from smart_caption_ros.engines.base import Arrays, BuildCancelledError, EngineError, GraphForm, Tensor
from smart_caption_ros.files import cache_folder, sha256_of_bytes, write_bytes_atomically

Progress = Callable[[str, int, int], None]
"""Called with the phase of a build, its finished steps and its number of steps."""

_WORKSPACE_BYTES = 1 << 30
_log = logging.getLogger(__name__)


class CudaRuntime:
    """``cuda.bindings.runtime`` with exceptions instead of status codes."""

    def __init__(self) -> None:
        """Raises EngineError where cuda-python is not installed, or there is no GPU."""
        try:
            try:
                from cuda.bindings import runtime
            except ImportError:
                from cuda import cudart as runtime  # its name before cuda-python 12.6
        except ImportError as error:
            raise EngineError(
                f"cuda-python cannot be imported ({error}); pip install cuda-python, of the version of your CUDA"
            ) from None
        self.names = runtime
        """The module, for its constants."""
        properties = self.call("cudaGetDeviceProperties", self.call("cudaGetDevice"))
        self.device_name: str = properties.name.decode().rstrip("\0")
        self.compute_capability = f"{properties.major}.{properties.minor}"

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the runtime; returns its result, or None if it has none. Raises EngineError."""
        status, *results = getattr(self.names, name)(*arguments)
        if status != self.names.cudaError_t.cudaSuccess:
            raise EngineError(f"{name} failed: {getattr(status, 'name', status)}")
        return results[0] if results else None

    def free(self, *, memory: list[int], graph: Any, stream: Any) -> None:
        """Free the resources of a graph; errors are ignored, since the driver may be gone at the end of a process."""
        for name, handles in (
            ("cudaGraphExecDestroy", [graph] if graph is not None else []),
            ("cudaStreamDestroy", [stream]),
            ("cudaFree", memory),
        ):
            for handle in handles:
                getattr(self.names, name)(handle)


class TensorRtEngine:
    """Loads static graphs; dynamic axes are fixed to 1, one frame at a time."""

    graph_forms: tuple[GraphForm, ...] = ("static",)

    def __init__(
        self,
        *,
        may_build: bool,
        on_progress: Progress = lambda phase, done, steps: None,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Args:
            may_build: whether to build an engine that is not in the cache, which takes minutes.
            on_progress: called during a build, from TensorRT's threads.
            is_cancelled: called before and during a build, from TensorRT's threads; True ends the build.

        Raises:
            EngineError: TensorRT or cuda-python is not installed, or there is no GPU.
        """
        try:
            import tensorrt
        except (ImportError, OSError) as error:  # OSError: a shared library of TensorRT is missing
            raise EngineError(
                f"tensorrt cannot be imported ({error}); it comes with JetPack, "
                "elsewhere pip install 'smart_caption_ros[tensorrt]'"
            ) from None
        self._trt = tensorrt
        self._cuda = CudaRuntime()
        self._logger = _make_logger(tensorrt)
        self._may_build, self._on_progress, self._is_cancelled = may_build, on_progress, is_cancelled
        self._facts = {
            "tensorrt": tensorrt.__version__,
            "device": self._cuda.device_name,
            "compute_capability": self._cuda.compute_capability,
            "workspace_bytes": _WORKSPACE_BYTES,
        }
        self.description = f"tensorrt {tensorrt.__version__} ({self._cuda.device_name})"

    def load(self, path: Path, content: bytes | None = None) -> "TensorRtGraph":
        """Load the engine of a graph from the cache, or build it if allowed.

        Raises EngineError where the cache has no valid engine and building is not allowed or fails.
        """
        content = _content(path, content)
        plan = self.plan_path(path, content)
        engine = self._deserialize(plan.read_bytes()) if plan.is_file() else None
        if engine is None or not (self._may_build or _mark_of(plan).is_file()):
            reason = "is damaged" if plan.is_file() and engine is None else "has not been built"
            if not self._may_build:
                raise EngineError(
                    f"the engine of {path.name} for {self.description} {reason} by `smart-caption bundle build`; run "
                    "it, with --detector for a detector outside the bundle"
                )
            _log.info("building the engine of %s, which %s: this takes minutes", path.name, reason)
            engine = self._deserialize(self.build(path, content))
            if engine is None:
                raise EngineError(f"{self.description} cannot load the engine of {path} that it has just built")
        return TensorRtGraph(self._trt, self._cuda, engine, str(path))

    def plan_path(self, path: Path, content: bytes | None = None) -> Path:
        """Return the path of a graph's engine in the cache; the name is a fingerprint of everything it depends on."""
        facts = {"package": __version__, "graph": sha256_of_bytes(_content(path, content)), **self._facts}
        key = sha256_of_bytes(json.dumps(facts, sort_keys=True).encode())
        return cache_folder() / "tensorrt" / f"{path.stem}-{key[:32]}.plan"

    def offer_to_auto(self, path: Path, content: bytes | None = None) -> None:
        """Let the engine choice ``auto`` take the built engine of a graph."""
        write_bytes_atomically(_mark_of(self.plan_path(path, content)), b"")

    def build(self, path: Path, content: bytes) -> bytes:
        """Build the engine of a graph and write it to the cache.

        A cancelled build ends after TensorRT's current step and writes nothing. Ctrl-C cancels a build as well.

        Returns:
            The serialized engine.

        Raises:
            EngineError: TensorRT cannot parse or build the graph.
            BuildCancelledError: the build was cancelled.
            KeyboardInterrupt: after Ctrl-C, once the build has ended.
        """
        trt, started = self._trt, time.monotonic()
        builder = trt.Builder(self._logger)
        flags = trt.NetworkDefinitionCreationFlag
        strongly_typed = 1 << int(flags.STRONGLY_TYPED) if hasattr(flags, "STRONGLY_TYPED") else 0
        network = builder.create_network(strongly_typed)
        parser = trt.OnnxParser(network, self._logger)
        if not parser.parse(content, str(path)):  # the path locates weights outside the graph
            errors = "; ".join(str(parser.get_error(index)) for index in range(parser.num_errors))
            raise EngineError(f"{self.description} cannot parse {path}: {errors}")
        config = builder.create_builder_config()
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, _WORKSPACE_BYTES)
        self._fix_dynamic_axes(builder, network, config)
        interrupted = threading.Event()

        def must_end() -> bool:
            return interrupted.is_set() or self._is_cancelled()

        monitor = _make_progress_monitor(trt, self._on_progress, must_end)  # must outlive the build
        config.progress_monitor = monitor
        name = f"timings-{trt.__version__}-{self._cuda.compute_capability}.cache"
        timings = cache_folder() / "tensorrt" / name
        known = config.create_timing_cache(timings.read_bytes() if timings.is_file() else b"")
        if not config.set_timing_cache(known, ignore_mismatch=False):
            config.set_timing_cache(config.create_timing_cache(b""), ignore_mismatch=False)
        serialized = None
        if not must_end():
            serialized = _run_interruptibly(lambda: builder.build_serialized_network(network, config), interrupted.set)
        if must_end():  # also where TensorRT had finished before it asked
            raise BuildCancelledError(f"the build of the engine of {path.name} was cancelled")
        if serialized is None:
            raise EngineError(f"{self.description} cannot build {path}; the log has its reasons")
        plan = bytes(serialized)
        try:
            timings.parent.mkdir(parents=True, exist_ok=True)
            write_bytes_atomically(self.plan_path(path, content), plan)
            write_bytes_atomically(timings, bytes(config.get_timing_cache().serialize()))
        except OSError as error:
            _log.warning("the engine of %s cannot be kept: %s", path.name, error)
        _log.info("built the engine of %s in %.0f s", path.name, time.monotonic() - started)
        return plan

    def _fix_dynamic_axes(self, builder: Any, network: Any, config: Any) -> None:
        profile = None
        for index in range(network.num_inputs):
            tensor = network.get_input(index)
            shape = tuple(tensor.shape)
            if -1 in shape:
                profile = profile or builder.create_optimization_profile()
                fixed = _fixed(shape)
                profile.set_shape(tensor.name, fixed, fixed, fixed)
        if profile is not None:
            config.add_optimization_profile(profile)

    def _deserialize(self, plan: bytes) -> Any:
        """Deserialize an engine; None if it is damaged, or of another version or GPU."""
        return self._trt.Runtime(self._logger).deserialize_cuda_engine(plan)


class TensorRtGraph:
    """An engine with an execution context, its buffers on the GPU, and a CUDA graph of one run."""

    one_at_a_time = True

    def __init__(self, trt: Any, cuda: CudaRuntime, engine: Any, name: str) -> None:
        """Raises EngineError where the GPU is out of memory, or the engine does not run."""
        self._cuda, self._name = cuda, name
        self._engine = engine  # must outlive the context
        self._context = engine.create_execution_context()
        if self._context is None:
            raise EngineError(f"TensorRT cannot make a context for {name}: the GPU's memory may be full")
        # The default stream cannot be captured.
        self._stream = cuda.call("cudaStreamCreateWithFlags", cuda.names.cudaStreamNonBlocking)
        names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
        is_input = {tensor: engine.get_tensor_mode(tensor) == trt.TensorIOMode.INPUT for tensor in names}
        self.input_names = tuple(tensor for tensor in names if is_input[tensor])
        self.output_names = tuple(tensor for tensor in names if not is_input[tensor])
        for tensor in self.input_names:
            if -1 in (shape := tuple(engine.get_tensor_shape(tensor))):
                self._context.set_input_shape(tensor, _fixed(shape))
        self._arrays = {
            tensor: np.zeros(tuple(self._context.get_tensor_shape(tensor)), trt.nptype(engine.get_tensor_dtype(tensor)))
            for tensor in names
        }
        self.inputs, self.outputs = (
            tuple(Tensor(tensor, self._arrays[tensor].shape, self._arrays[tensor].dtype.name) for tensor in kind)
            for kind in (self.input_names, self.output_names)
        )
        self.metadata: Mapping[str, str] = {}
        self._memory: dict[str, int] = {}
        for tensor, array in self._arrays.items():
            self._memory[tensor] = cuda.call("cudaMalloc", max(array.nbytes, 1))
            self._context.set_tensor_address(tensor, self._memory[tensor])
        self._replay: Any = None
        self._upload(self._arrays)
        self._enqueue()  # the first run allocates memory, which is not allowed during a capture
        cuda.call("cudaStreamSynchronize", self._stream)
        try:
            self._replay = self._capture()
            self.mode = "CUDA graph"
        except EngineError as error:
            self.mode = f"no CUDA graph: {error}"
        weakref.finalize(
            self, cuda.free, memory=list(self._memory.values()), graph=self._replay, stream=self._stream
        )  # fmt: skip

    def run(self, inputs: Arrays) -> dict[str, np.ndarray]:
        if set(inputs) != set(self.input_names):
            raise EngineError(f"{self._name} failed: it takes {', '.join(self.input_names)}, not {', '.join(inputs)}")
        for name, array in inputs.items():
            wanted = self._arrays[name]
            if array.shape != wanted.shape or array.dtype != wanted.dtype:
                raise EngineError(
                    f"{self._name} failed: {name} must be {wanted.dtype} {wanted.shape}, "
                    f"not {array.dtype} {array.shape}"
                )
        self._upload(inputs)
        if self._replay is not None:
            self._cuda.call("cudaGraphLaunch", self._replay, self._stream)
        else:
            self._enqueue()
        outputs = {name: np.empty_like(self._arrays[name]) for name in self.output_names}
        to_host = self._cuda.names.cudaMemcpyKind.cudaMemcpyDeviceToHost
        for name, array in outputs.items():
            self._cuda.call(
                "cudaMemcpyAsync", array.ctypes.data, self._memory[name], array.nbytes, to_host, self._stream
            )
        self._cuda.call("cudaStreamSynchronize", self._stream)
        return outputs

    def _upload(self, inputs: Arrays) -> None:
        to_device = self._cuda.names.cudaMemcpyKind.cudaMemcpyHostToDevice
        for name in self.input_names:
            array = np.ascontiguousarray(inputs[name])
            self._cuda.call(
                "cudaMemcpyAsync", self._memory[name], array.ctypes.data, array.nbytes, to_device, self._stream
            )

    def _enqueue(self) -> None:
        if not self._context.execute_async_v3(int(self._stream)):
            raise EngineError(f"{self._name} failed: TensorRT could not enqueue it; the log has its reasons")

    def _capture(self) -> Any:
        thread_local = self._cuda.names.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        self._cuda.call("cudaStreamBeginCapture", self._stream, thread_local)
        try:
            self._enqueue()
        finally:  # also after a failure: the stream would remain in capture mode
            graph = self._cuda.call("cudaStreamEndCapture", self._stream)
        replay = self._cuda.call("cudaGraphInstantiate", graph, 0)
        self._cuda.call("cudaGraphDestroy", graph)
        return replay


def _content(path: Path, content: bytes | None) -> bytes:
    try:
        return path.read_bytes() if content is None else content
    except OSError as error:
        raise EngineError(f"{path} cannot be loaded: {error}") from None


def _mark_of(plan: Path) -> Path:
    """Return the file whose presence says that `smart-caption bundle build` has built an engine."""
    return plan.with_suffix(".auto")


def _fixed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if axis == -1 else axis for axis in shape)


def _make_logger(trt: Any) -> Any:
    levels = {"INTERNAL_ERROR": logging.ERROR, "ERROR": logging.ERROR, "WARNING": logging.WARNING}

    class Logger(trt.ILogger):
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            _log.log(levels.get(severity.name, logging.DEBUG), "TensorRT: %s", message)

    return Logger()


def _run_interruptibly(work: Callable[[], Any], interrupt: Callable[[], None]) -> Any:
    """Run a function on a thread and wait for it; after Ctrl-C, call ``interrupt`` and wait on.

    Python handles Ctrl-C on the main thread, and only after a library call there has returned. A second Ctrl-C ends the
    wait. Raises KeyboardInterrupt, and what ``work`` raises.
    """
    future: Future[Any] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    try:
        threading.Thread(target=run, name="tensorrt build", daemon=True).start()
        return future.result()
    except KeyboardInterrupt:
        interrupt()
        if not future.cancel():  # it has begun
            wait([future])
        raise


def _make_progress_monitor(trt: Any, on_progress: Progress, must_end: Callable[[], bool]) -> Any:
    """Make an `IProgressMonitor`; TensorRT calls it from several threads and swallows its exceptions."""

    class Monitor(trt.IProgressMonitor):
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self._steps: dict[str, int] = {}

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            self._steps[phase_name] = num_steps
            on_progress(phase_name, 0, num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            on_progress(phase_name, step + 1, self._steps.get(phase_name, step + 1))
            return not must_end()  # False cancels the build

        def phase_finish(self, phase_name: str) -> None:
            steps = self._steps.pop(phase_name, 1)
            on_progress(phase_name, steps, steps)

    return Monitor()
