"""Stand-ins for `tensorrt` and `cuda.bindings.runtime` that hold a caller to the documented order of calls.

Written from NVIDIA's documentation of the API that 10.3 and 11 share; whatever else a caller asks for is not there.
Memory is the host's, and an engine computes with ONNX Runtime, so that results can be compared. What these cannot
show is that the real libraries agree with their documentation.
"""

from __future__ import annotations

import ctypes
import enum
import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest

MAGIC = b"FAKEPLAN"


class Status(enum.Enum):
    cudaSuccess = 0  # noqa: N815  # NVIDIA's name
    cudaErrorStreamCaptureUnsupported = 900  # noqa: N815  # as above


class CaptureMode(enum.Enum):
    cudaStreamCaptureModeThreadLocal = 1  # noqa: N815  # as above


class CopyKind(enum.Enum):
    cudaMemcpyHostToDevice = 1  # noqa: N815  # as above
    cudaMemcpyDeviceToHost = 2  # noqa: N815  # as above


class FakeGpu:
    """Memory, streams and CUDA graphs."""

    def __init__(self, name: str = "Fake GPU", can_capture: bool = True) -> None:
        self.name, self.can_capture = name, can_capture
        self.memory: dict[int, Any] = {}
        self.streams: dict[int, list[Callable[[], None]] | None] = {}
        self.stream_handles = itertools.count(1000)  # a handle is never given out twice
        self.warmed_up: set[int] = set()
        self.replays = 0

    def enqueue(self, stream: int, work: Callable[[], None]) -> None:
        """Do the work, or take it down where the stream is being captured."""
        captured = self.streams[stream]
        if captured is not None:
            assert stream in self.warmed_up, "the first enqueue allocates and must not be captured"
            captured.append(work)
        else:
            self.warmed_up.add(stream)
            work()

    def runtime(self) -> ModuleType:
        """`cuda.bindings.runtime`: every function returns its status first."""
        ok = Status.cudaSuccess
        module = ModuleType("cuda.bindings.runtime")

        def malloc(size: int) -> tuple[Status, int]:
            buffer = ctypes.create_string_buffer(size)
            address = ctypes.addressof(buffer)
            self.memory[address] = buffer
            return ok, address

        def free(address: int) -> tuple[Status]:
            del self.memory[address]
            return (ok,)

        def copy(to: int, source: int, size: int, kind: CopyKind, stream: int) -> tuple[Status]:
            assert self.streams[stream] is None, "copies are no part of the captured work"
            assert (to if kind is CopyKind.cudaMemcpyHostToDevice else source) in self.memory
            ctypes.memmove(to, source, size)
            return (ok,)

        def make_stream(flags: int) -> tuple[Status, int]:
            stream = next(self.stream_handles)
            self.streams[stream] = None
            return ok, stream

        def begin(stream: int, mode: CaptureMode) -> tuple[Status]:
            assert mode is CaptureMode.cudaStreamCaptureModeThreadLocal
            if not self.can_capture:
                return (Status.cudaErrorStreamCaptureUnsupported,)
            self.streams[stream] = []
            return (ok,)

        def end(stream: int) -> tuple[Status, Any]:
            captured, self.streams[stream] = self.streams[stream], None
            return ok, captured

        def launch(replay: list[Callable[[], None]], stream: int) -> tuple[Status]:
            self.replays += 1
            for work in replay:
                work()
            return (ok,)

        def destroy_stream(stream: int) -> tuple[Status]:
            del self.streams[stream]
            return (ok,)

        properties = SimpleNamespace(name=self.name.encode() + b"\0\0", major=8, minor=7)
        vars(module).update(
            cudaError_t=Status,
            cudaMemcpyKind=CopyKind,
            cudaStreamCaptureMode=CaptureMode,
            cudaStreamNonBlocking=1,
            cudaGetDevice=lambda: (ok, 0),
            cudaGetDeviceProperties=lambda device: (ok, properties),
            cudaMalloc=malloc,
            cudaFree=free,
            cudaMemcpyAsync=copy,
            cudaStreamCreateWithFlags=make_stream,
            cudaStreamDestroy=destroy_stream,
            cudaStreamSynchronize=lambda stream: (ok,),
            cudaStreamBeginCapture=begin,
            cudaStreamEndCapture=end,
            cudaGraphInstantiate=lambda graph, flags: (ok, list(graph)),
            cudaGraphDestroy=lambda graph: (ok,),
            cudaGraphExecDestroy=lambda replay: (ok,),
            cudaGraphLaunch=launch,
        )
        return module


class _Network:
    def __init__(self, flags: int) -> None:
        self.flags = flags
        self.path = ""
        self.inputs: list[Any] = []

    @property
    def num_inputs(self) -> int:
        return len(self.inputs)

    def get_input(self, index: int) -> Any:
        return self.inputs[index]


class _Parser:
    def __init__(self, network: _Network, logger: Any) -> None:
        self._network = network
        self._errors: list[str] = []

    def parse(self, model: bytes, path: str) -> bool:
        if b"DequantizeLinear" in model:
            self._errors = ["weights in 8 bits ask for kernels of 8 bits"]
            return False
        # Weights beside a graph are found by its path.
        source = path if Path(path).read_bytes() == model else model
        try:
            session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
        except Exception as error:
            self._errors = [str(error)]
            return False
        self._network.path = path
        self._network.inputs = [
            SimpleNamespace(name=each.name, shape=_shape(each.shape)) for each in session.get_inputs()
        ]
        return True

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, index: int) -> str:
        return self._errors[index]


class _TimingCache:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def serialize(self) -> bytearray:
        return bytearray(self.content + b"timed;")


class _Config:
    progress_monitor: Any = None

    def __init__(self) -> None:
        self.limits: dict[Any, int] = {}
        self.profiles: list[_Profile] = []
        self.timing_cache: _TimingCache | None = None

    def set_memory_pool_limit(self, pool: Any, size: int) -> None:
        self.limits[pool] = size

    def create_timing_cache(self, content: bytes) -> _TimingCache:
        return _TimingCache(content)

    def set_timing_cache(self, cache: _TimingCache, ignore_mismatch: bool) -> bool:
        if cache.content and not cache.content.startswith(b"timed;"):
            return False
        self.timing_cache = cache
        return True

    def get_timing_cache(self) -> _TimingCache:
        assert self.timing_cache is not None
        return self.timing_cache

    def add_optimization_profile(self, profile: _Profile) -> int:
        self.profiles.append(profile)
        return len(self.profiles) - 1


class _Profile:
    def __init__(self) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}

    def set_shape(self, name: str, least: tuple[int, ...], best: tuple[int, ...], most: tuple[int, ...]) -> None:
        assert least == best == most
        self.shapes[name] = best


class _Context:
    def __init__(self, engine: _Engine, gpu: FakeGpu) -> None:
        self._engine, self._gpu = engine, gpu
        self._shapes = {name: shape for name, shape in engine.shapes.items() if name in engine.inputs}
        self._addresses: dict[str, int] = {}

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self._shapes[name] = shape
        return True

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        if name in self._shapes:
            return self._shapes[name]
        assert all(-1 not in shape for shape in self._shapes.values()), "the shapes of the inputs come first"
        examples = {
            each: np.ones(shape, self._engine.dtypes[each]) for each, shape in self._shapes.items()
        }  # fmt: skip
        outputs = self._engine.compute(examples)
        return tuple(outputs[name].shape)

    def set_tensor_address(self, name: str, address: int) -> bool:
        assert address in self._gpu.memory
        self._addresses[name] = address
        return True

    def execute_async_v3(self, stream: int) -> bool:
        assert set(self._addresses) == set(self._engine.names), "a tensor has no address"
        self._gpu.enqueue(stream, self._execute)
        return True

    def _execute(self) -> None:
        inputs = {}
        for name, shape in self._shapes.items():
            array = np.empty(shape, self._engine.dtypes[name])
            ctypes.memmove(array.ctypes.data, self._addresses[name], array.nbytes)
            inputs[name] = array
        for name, array in self._engine.compute(inputs).items():
            array = np.ascontiguousarray(array)
            ctypes.memmove(self._addresses[name], array.ctypes.data, array.nbytes)


class _Engine:
    def __init__(self, path: str, gpu: FakeGpu) -> None:
        self._gpu = gpu
        self._session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        tensors = [*self._session.get_inputs(), *self._session.get_outputs()]
        self.names = [each.name for each in tensors]
        self.inputs = {each.name for each in self._session.get_inputs()}
        self.shapes = {each.name: _shape(each.shape) for each in tensors}
        kinds = {"float": np.float32, "uint8": np.uint8, "int64": np.int64, "bool": np.bool_}
        self.dtypes = {each.name: kinds[each.type[len("tensor(") : -1]] for each in tensors}

    def compute(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = [name for name in self.names if name not in self.inputs]
        return dict(zip(outputs, self._session.run(outputs, inputs), strict=True))

    @property
    def num_io_tensors(self) -> int:
        return len(self.names)

    def get_tensor_name(self, index: int) -> str:
        return self.names[index]

    def get_tensor_mode(self, name: str) -> str:
        return "input" if name in self.inputs else "output"

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return self.shapes[name]

    def get_tensor_dtype(self, name: str) -> Any:
        return self.dtypes[name]

    def create_execution_context(self) -> _Context:
        return _Context(self, self._gpu)


def _shape(shape: list[Any]) -> tuple[int, ...]:
    return tuple(axis if isinstance(axis, int) else -1 for axis in shape)


class _Build:
    """The calls of an `IProgressMonitor` during a build, as NVIDIA documents them.

    They come from a thread of TensorRT's own. A phase may have phases within it. After `step_complete` has returned
    False, the open phases finish before all their steps. An exception in the monitor is printed and does not leave it;
    `step_complete` counts as False then.
    """

    def __init__(self, monitor: Any, on_step: Callable[[], None]) -> None:
        self._monitor, self._on_step = monitor, on_step
        self.cancelled = False

    def run(self) -> None:
        thread = threading.Thread(target=self._phase, args=("Building Engine", None, ("Tactic Selection", "Finishing")))
        thread.start()
        thread.join()

    def _phase(self, name: str, parent: str | None, inner: tuple[str, ...]) -> None:
        steps = max(2, len(inner))
        self._call("phase_start", name, parent, steps)
        for step in range(steps):
            if step < len(inner):
                self._phase(inner[step], name, ())
            if not self.cancelled:
                self._on_step()
                self.cancelled = not self._call("step_complete", name, step)
            if self.cancelled:
                break
        self._call("phase_finish", name)

    def _call(self, name: str, *arguments: object) -> Any:
        try:
            return getattr(self._monitor, name)(*arguments)
        except BaseException as error:
            print(f"[ERROR] Exception caught in {name}(): {error}", file=sys.stderr)
            return False


def fake_tensorrt(version: str, gpu: FakeGpu, *, strongly_typed_flag: bool = True) -> ModuleType:
    """`tensorrt`, of a version.

    `builds` counts the engines that were built, `cancelled_builds` those that the monitor ended; `on_step` is called at
    every step of a build.
    """
    module = ModuleType("tensorrt")

    class ILogger:
        def log(self, severity: Any, message: str) -> None:
            raise NotImplementedError

    class IProgressMonitor:
        pass

    class Builder:
        def __init__(self, logger: ILogger) -> None:
            assert isinstance(logger, ILogger)

        def create_network(self, flags: int) -> _Network:
            assert flags == (1 << 1 if strongly_typed_flag else 0)
            return _Network(flags)

        def create_builder_config(self) -> _Config:
            return _Config()

        def create_optimization_profile(self) -> _Profile:
            return _Profile()

        def build_serialized_network(self, network: _Network, config: _Config) -> bytearray | None:
            assert network.path, "nothing was parsed"
            assert config.limits
            assert config.timing_cache is not None
            opened = {each.name for each in network.inputs if -1 in each.shape}
            assert opened == {name for profile in config.profiles for name in profile.shapes}
            monitor = config.progress_monitor
            assert isinstance(monitor, IProgressMonitor)
            build = _Build(monitor, vars(module)["on_step"])
            build.run()
            if build.cancelled:
                vars(module)["cancelled_builds"] += 1
                return None
            vars(module)["builds"] += 1
            if vars(module)["cannot_build"]:
                return None
            return bytearray(MAGIC + f"{version}\n{network.path}".encode())

    class Runtime:
        def __init__(self, logger: ILogger) -> None:
            assert isinstance(logger, ILogger)

        def deserialize_cuda_engine(self, plan: bytes) -> _Engine | None:
            if not plan.startswith(MAGIC):
                return None
            built_by, path = plan[len(MAGIC) :].decode().split("\n")
            return _Engine(path, gpu) if built_by == version else None

    vars(module).update(
        __version__=version,
        builds=0,
        cancelled_builds=0,
        on_step=lambda: None,
        cannot_build=False,
        ILogger=ILogger,
        IProgressMonitor=IProgressMonitor,
        Builder=Builder,
        OnnxParser=_Parser,
        Runtime=Runtime,
        NetworkDefinitionCreationFlag=SimpleNamespace(**({"STRONGLY_TYPED": 1} if strongly_typed_flag else {})),
        MemoryPoolType=SimpleNamespace(WORKSPACE="workspace"),
        TensorIOMode=SimpleNamespace(INPUT="input", OUTPUT="output"),
        nptype=lambda dtype: dtype,
    )
    return module


def install(
    monkeypatch: pytest.MonkeyPatch,
    cache: Path,
    version: str = "10.3.0",
    gpu: FakeGpu | None = None,
    **options: Any,
) -> Any:
    """Put the fakes where `import` finds them, and the engine cache into a folder; returns the fake tensorrt."""
    gpu = gpu or FakeGpu()
    module = fake_tensorrt(version, gpu, **options)
    bindings = ModuleType("cuda.bindings")
    vars(bindings)["runtime"] = gpu.runtime()
    monkeypatch.setitem(sys.modules, "tensorrt", module)
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return module


def interrupt_at_first_step(module: Any) -> None:
    """Send SIGINT at the first step of a build, as Ctrl-C does, and let the build go on once it was handled."""
    handled = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, before)
        handled.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    steps = itertools.count()

    def on_step() -> None:
        if next(steps) == 0:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            assert handled.wait(10)
        time.sleep(0.01)

    module.on_step = on_step
