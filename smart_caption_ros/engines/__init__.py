"""Inference engines behind one protocol, and the choice of an engine."""

import logging
from collections.abc import Callable
from typing import TypeVar

from smart_caption_ros.engines.base import Engine, EngineError, EngineReport, Graph, Tensor, run_batch
from smart_caption_ros.engines.onnxruntime import CPU, CUDA, TENSORRT, OnnxRuntimeEngine
from smart_caption_ros.engines.tensorrt import TensorRtEngine

AUTO = "auto"
_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


_REMEDIES = {
    "tensorrt": (
        "on a machine with an NVIDIA GPU, install tensorrt and cuda-python, then run `smart-caption bundle build`"
    ),
    "onnxruntime-tensorrt": "on a machine with TensorRT, replace onnxruntime by onnxruntime-gpu",
    "onnxruntime-cuda": "on a machine with an NVIDIA GPU, replace onnxruntime by onnxruntime-gpu",
    "onnxruntime-cpu": "pip install onnxruntime",
}
"""What makes each engine work, fastest engine first: ``auto`` selects the first one that works."""
_PROVIDERS = {"onnxruntime-tensorrt": TENSORRT, "onnxruntime-cuda": CUDA, "onnxruntime-cpu": CPU}
# Its sessions may build for minutes when they start, and cannot tell in advance.
_NOT_AUTOMATIC = "onnxruntime-tensorrt"

ENGINE_NAMES = (AUTO, *_REMEDIES)


def load_with(
    name: str,
    threads: int | None,
    load: Callable[[Engine], T],
    *,
    spinning: bool = True,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> tuple[T, str, tuple[str, ...]]:
    """Call ``load`` with an engine.

    Args:
        name: one of :data:`ENGINE_NAMES`; ``auto`` selects the fastest engine with which ``load`` succeeds; TensorRT
            counts only with engines that `smart-caption bundle build` has built for these graphs on this device.
        load: raises EngineError if the engine does not meet the needs of the caller.
        spinning: whether CPU threads without work poll for it during a run, which is faster and takes CPU time from
            other processes.
        is_cancelled: called before and during the build of a TensorRT engine, on any thread; True ends the build.

    Returns:
        What ``load`` returned, why this engine was chosen, and with ``auto`` the faster engines that are installed but
        could not load the graphs, each with the reason.

    Raises:
        EngineError: the name is unknown, or the engine does not work here; with ``auto``, the error of the last engine
            that is installed.
        BuildCancelledError: the build of an engine was cancelled.
    """
    if name != AUTO:
        engine = create_engine(name, threads, spinning=spinning, is_cancelled=is_cancelled)
        return load(engine), f"{name} was asked for", ()
    absent: list[str] = []
    refused: list[str] = []
    failure: EngineError | None = None
    for candidate in _REMEDIES:
        if candidate == _NOT_AUTOMATIC:
            continue
        try:
            engine = create_engine(candidate, threads, spinning=spinning, may_build=False)
        except EngineError as error:
            _LOGGER.debug("not %s: %s", candidate, error)
            absent.insert(0, f"{candidate}: {error}")
            continue
        try:
            loaded = load(engine)
        except EngineError as error:
            refused.append(f"not {candidate}: {error}")
            failure = error
        else:
            return loaded, f"auto took {candidate}, the fastest that works here", tuple(refused)
    # The reason why an installed engine refuses the graph matters more than why others are not installed.
    raise failure or EngineError(f"no inference engine works here: {'; '.join(absent)}")


def create_engine(
    name: str = AUTO,
    threads: int | None = None,
    *,
    spinning: bool = True,
    may_build: bool = True,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Engine:
    """Create an engine by name, or with ``auto`` the fastest one that works on this machine.

    Args:
        may_build: whether the engine of a graph may be built, which takes minutes.

    Raises:
        EngineError: the name is unknown, or the engine does not work here.
    """
    if name == AUTO:
        return load_with(AUTO, threads, lambda engine: engine, spinning=spinning)[0]
    if name not in ENGINE_NAMES:
        raise EngineError(f"unknown engine {name!r}; choose one of {', '.join(ENGINE_NAMES)}")
    if name == "tensorrt":
        return TensorRtEngine(may_build=may_build, is_cancelled=is_cancelled)
    return OnnxRuntimeEngine(_PROVIDERS[name], threads, spinning=spinning)


def available_engines() -> list[EngineReport]:
    """Try every engine on this machine and report the results."""
    reports = []
    for name, remedy in _REMEDIES.items():
        try:
            reports.append(EngineReport(name, True, create_engine(name, may_build=False).description, ""))
        except EngineError as error:
            reports.append(EngineReport(name, False, str(error), remedy))
    return reports


__all__ = [
    "AUTO",
    "ENGINE_NAMES",
    "Engine",
    "EngineReport",
    "Graph",
    "Tensor",
    "available_engines",
    "create_engine",
    "load_with",
    "run_batch",
]
