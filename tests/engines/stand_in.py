"""An engine in the place of TensorRT, for what stands around engines: the choice, cancelling, comparisons."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from smart_caption_ros import engines
from smart_caption_ros.engines.base import BuildCancelledError, EngineError, Graph
from smart_caption_ros.engines.onnxruntime import CPU, OnnxRuntimeEngine

Load = Callable[[Path, bytes | None], Graph]


class StandIn:
    """Builds an engine for each graph, as TensorRT does, and runs it with ONNX Runtime on the CPU."""

    def __init__(self, monkeypatch):
        self.builds = 0
        self.on_build = lambda: None
        """Called at every build."""
        self.load = OnnxRuntimeEngine(CPU, 1).load
        monkeypatch.setattr(engines, "TensorRtEngine", self._create)

    def _create(self, *, may_build, is_cancelled):
        def load(path, content=None):
            if not may_build:
                raise EngineError(f"the engine of {path.name} has not been built")
            self.on_build()
            if is_cancelled():
                raise BuildCancelledError(f"the build of the engine of {path.name} was cancelled")
            self.builds += 1
            return self.load(path, content)

        return SimpleNamespace(load=load, description="stand-in", graph_forms=("static",))
