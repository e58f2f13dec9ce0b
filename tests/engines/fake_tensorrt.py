"""A stand-in for TensorRT that counts builds, for the tests of the cache, of cancelling and of the choice of engines.

A plan is the path of its graph, which ONNX Runtime runs. The calls of TensorRT and CUDA are tested on a GPU alone
(test_gpu.py).
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from smart_caption_ros.engines import tensorrt
from smart_caption_ros.engines.onnxruntime import CPU, OnnxRuntimeEngine

_MAGIC = b"plan of "


class FakeTensorRt(ModuleType):
    """The module `tensorrt`."""

    class ILogger:
        pass

    class IProgressMonitor:
        pass

    NetworkDefinitionCreationFlag = MemoryPoolType = MagicMock()

    def __init__(self, version: str) -> None:
        super().__init__("tensorrt")
        self.__version__ = version
        self.builds = 0
        self.cancelled_builds = 0
        self.cannot_build = False
        self.on_step: Callable[[], None] = lambda: None
        """Called at every step of a build."""

    def Builder(self, logger: Any) -> Any:  # noqa: N802  # NVIDIA's name
        config = MagicMock()
        config.get_timing_cache().serialize.return_value = b"timings"
        builder = MagicMock(build_serialized_network=self._build)
        builder.create_builder_config.return_value = config
        builder.create_network.return_value = SimpleNamespace(num_inputs=0)
        return builder

    def OnnxParser(self, network: Any, logger: Any) -> Any:  # noqa: N802  # as above
        def parse(model: bytes, path: str) -> bool:
            network.path = path
            return b"Nonsense" not in model

        return SimpleNamespace(parse=parse, num_errors=1, get_error=lambda index: "no operator Nonsense")

    def Runtime(self, logger: Any) -> Any:  # noqa: N802  # as above
        def deserialize(plan: bytes) -> str | None:
            return plan.removeprefix(_MAGIC).decode() if plan.startswith(_MAGIC) else None

        return SimpleNamespace(deserialize_cuda_engine=deserialize)

    def _build(self, network: Any, config: Any) -> bytes | None:
        monitor = config.progress_monitor
        monitor.phase_start("Building Engine", None, 2)
        for step in range(2):
            self.on_step()
            if not monitor.step_complete("Building Engine", step):
                self.cancelled_builds += 1
                return None
        monitor.phase_finish("Building Engine")
        self.builds += 1
        return None if self.cannot_build else _MAGIC + network.path.encode()


def install(
    monkeypatch: pytest.MonkeyPatch, cache: Path, version: str = "10.3.0", device: str = "Fake GPU"
) -> FakeTensorRt:
    """Put the stand-in where `import` finds it, and the cache of engines into a folder."""
    module = FakeTensorRt(version)
    monkeypatch.setitem(sys.modules, "tensorrt", module)
    monkeypatch.setattr(
        tensorrt, "CudaRuntime", lambda: SimpleNamespace(device_name=device, compute_capability="8.7")
    )  # fmt: skip
    monkeypatch.setattr(
        tensorrt, "TensorRtGraph", lambda trt, cuda, path, name: OnnxRuntimeEngine(CPU, 1).load(Path(path))
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return module


def interrupt_at_first_step(module: FakeTensorRt) -> None:
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
