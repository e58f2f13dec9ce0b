"""Inference engines behind one protocol."""

from collections.abc import Callable

from smart_caption_ros.captioning.engines.base import Engine, EngineReport, Graph, Tensor
from smart_caption_ros.captioning.engines.onnx import OnnxRuntimeEngine
from smart_caption_ros.captioning.errors import EngineError

AUTO = "auto"

# Fastest first: ``auto`` takes the first that works. The second entry says what would make it work.
_ENGINES: dict[str, tuple[Callable[[int | None], Engine], str]] = {
    "onnxruntime-cuda": (
        lambda threads: OnnxRuntimeEngine("CUDAExecutionProvider", threads),
        "on a machine with an NVIDIA GPU, replace onnxruntime by onnxruntime-gpu",
    ),
    "onnxruntime-cpu": (
        lambda threads: OnnxRuntimeEngine("CPUExecutionProvider", threads),
        "pip install onnxruntime",
    ),
}

ENGINE_NAMES = (AUTO, *_ENGINES)


def create_engine(name: str = AUTO, threads: int | None = None) -> Engine:
    """The engine of that name, or with ``auto`` the fastest that works on this machine.

    Args:
        name: one of :data:`ENGINE_NAMES`.
        threads: CPU threads; None leaves the choice to the engine.

    Raises:
        EngineError: the name is unknown, or the engine does not work here.
    """
    if name == AUTO:
        reasons = []
        for create, _ in _ENGINES.values():
            try:
                return create(threads)
            except EngineError as error:
                reasons.append(str(error))
        raise EngineError(f"no inference engine works here: {'; '.join(reasons)}")
    if name not in _ENGINES:
        raise EngineError(f"unknown engine {name!r}; choose one of {', '.join(ENGINE_NAMES)}")
    return _ENGINES[name][0](threads)


def available_engines() -> list[EngineReport]:
    """A report on every engine, found by trying it."""
    reports = []
    for name, (create, remedy) in _ENGINES.items():
        try:
            reports.append(EngineReport(name, True, create(None).description, ""))
        except EngineError as error:
            reports.append(EngineReport(name, False, str(error), remedy))
    return reports


__all__ = ["AUTO", "ENGINE_NAMES", "Engine", "EngineReport", "Graph", "Tensor", "available_engines", "create_engine"]
