"""Inference engines behind one protocol, and the registry that selects one."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from smart_caption_ros.engines.base import Engine, EngineError, EngineReport, Graph, Tensor, run_batch
from smart_caption_ros.engines.onnxruntime import CPU, CUDA, TENSORRT, OnnxRuntimeEngine
from smart_caption_ros.engines.tensorrt import TensorRtEngine

AUTO = "auto"
_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class _Entry:
    """An engine in the registry.

    Attributes:
        create: makes the engine from its CPU threads, whether they poll for work, whether it may build engines, which
            takes minutes, and the function that ends such a build.
        automatic: whether ``auto`` may select it.
    """

    create: Callable[[int | None, bool, bool, Callable[[], bool]], Engine]
    remedy: str
    automatic: bool = True


def _onnxruntime(provider: str, remedy: str, *, automatic: bool = True) -> _Entry:
    return _Entry(
        lambda threads, spinning, *_: OnnxRuntimeEngine(provider, threads, spinning=spinning), remedy, automatic
    )


# Fastest first: ``auto`` selects the first one that works.
_ENGINES: dict[str, _Entry] = {
    "tensorrt": _Entry(
        lambda threads, spinning, may_build, is_cancelled: TensorRtEngine(
            may_build=may_build, is_cancelled=is_cancelled
        ),
        "on a machine with an NVIDIA GPU, install tensorrt and cuda-python, then run `smart-caption bundle build`",
    ),
    # Not automatic: it may build for minutes when a session starts, and cannot tell in advance.
    "onnxruntime-tensorrt": _onnxruntime(
        TENSORRT, "on a machine with TensorRT, replace onnxruntime by onnxruntime-gpu", automatic=False
    ),
    "onnxruntime-cuda": _onnxruntime(CUDA, "on a machine with an NVIDIA GPU, replace onnxruntime by onnxruntime-gpu"),
    "onnxruntime-cpu": _onnxruntime(CPU, "pip install onnxruntime"),
}

ENGINE_NAMES = (AUTO, *_ENGINES)


@dataclass(frozen=True)
class EngineChoice:
    """Why an engine was chosen.

    Attributes:
        fallbacks: faster engines that are installed but could not load the graphs, each with the reason.
    """

    reason: str
    fallbacks: tuple[str, ...] = ()


def load_with(
    name: str,
    threads: int | None,
    load: Callable[[Engine], T],
    *,
    spinning: bool = True,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> tuple[T, EngineChoice]:
    """Call ``load`` with an engine.

    Args:
        name: one of :data:`ENGINE_NAMES`; ``auto`` selects the fastest engine with which ``load`` succeeds; TensorRT
            only with engines that `smart-caption bundle build` has built for these graphs on this device.
        load: raises EngineError if the engine does not meet the needs of the caller.
        spinning: whether CPU threads without work poll for it during a run, which is faster and takes CPU time from
            other processes.
        is_cancelled: called before and during the build of a TensorRT engine, on any thread; True ends the build.

    Returns:
        What ``load`` returned, and why this engine was chosen.

    Raises:
        EngineError: the name is unknown, or the engine does not work here; with ``auto``, what the last engine that is
            installed says.
        BuildCancelledError: the build of an engine was cancelled.
    """
    if name != AUTO:
        engine = create_engine(name, threads, spinning=spinning, is_cancelled=is_cancelled)
        return load(engine), EngineChoice(f"{name} was asked for")
    absent: list[str] = []
    refused: list[str] = []
    failure: EngineError | None = None
    for candidate, entry in _ENGINES.items():
        if not entry.automatic:
            continue
        try:
            engine = entry.create(threads, spinning, False, is_cancelled)
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
            return loaded, EngineChoice(f"auto took {candidate}, the fastest that works here", tuple(refused))
    # What an engine that works says of the graph matters more than why others are not installed.
    raise failure or EngineError(f"no inference engine works here: {'; '.join(absent)}")


def create_engine(
    name: str = AUTO,
    threads: int | None = None,
    *,
    spinning: bool = True,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Engine:
    """Create an engine by name, or with ``auto`` the fastest one that works on this machine.

    Raises:
        EngineError: the name is unknown, or the engine does not work here.
    """
    if name == AUTO:
        return load_with(AUTO, threads, lambda engine: engine, spinning=spinning)[0]
    if name not in _ENGINES:
        raise EngineError(f"unknown engine {name!r}; choose one of {', '.join(ENGINE_NAMES)}")
    return _ENGINES[name].create(threads, spinning, True, is_cancelled)


def available_engines() -> list[EngineReport]:
    """Try every engine on this machine and report the results."""
    reports = []
    for name, entry in _ENGINES.items():
        try:
            engine = entry.create(None, True, False, lambda: False)
            reports.append(EngineReport(name, True, engine.description, ""))
        except EngineError as error:
            reports.append(EngineReport(name, False, str(error), entry.remedy))
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
