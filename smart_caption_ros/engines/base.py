"""The protocols of inference engines and graphs, and their errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from smart_caption_ros.errors import ExpectedError

Arrays = Mapping[str, np.ndarray]
GraphForm = Literal["dynamic", "static"]
"""``dynamic``: control flow and dynamic axes; ``static``: neither."""


class EngineError(ExpectedError):
    """An inference engine is not installed, or cannot load or run a graph."""


class BuildCancelledError(EngineError):
    """The build of an engine was cancelled."""


@dataclass(frozen=True)
class Tensor:
    """An input or output of a graph, as the graph declares it."""

    name: str
    shape: tuple[int | None, ...]
    """None for a dynamic axis."""
    dtype: str
    """NumPy name of the dtype, such as ``float32``."""

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} [{', '.join('?' if size is None else str(size) for size in self.shape)}]"


class Graph(Protocol):
    """A loaded ONNX graph."""

    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    one_at_a_time: bool
    """Whether the batch axis is fixed to 1; see :func:`run_batch`."""
    mode: str
    """How the graph runs if there is a choice, e.g. ``CUDA graph``, or the reason for the slower choice."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: Mapping[str, str]
    """Metadata of the ONNX file; empty if the engine does not keep them."""

    def run(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """Run the graph; returns all outputs by name. Raises EngineError for other inputs, and where it fails."""
        ...


class Engine(Protocol):
    """Loads graphs. A new engine needs a module in this package and an entry in `engines/__init__.py`."""

    description: str
    """Library, version and device in use, e.g. ``onnxruntime 1.31.1 (CPUExecutionProvider)``."""
    graph_forms: tuple[GraphForm, ...]
    """The forms of a graph that this engine can run, fastest first."""

    def load(self, path: Path, content: bytes | None = None) -> Graph:
        """Load a graph.

        Args:
            path: ONNX file, which names the graph in messages.
            content: the whole graph in memory, so that nothing is read from the disk; None reads the file.

        Raises:
            EngineError: the engine cannot run the graph.
        """
        ...


@dataclass(frozen=True)
class EngineReport:
    """The result of trying an engine on this machine."""

    name: str
    available: bool
    detail: str
    """Description of the engine, or the reason why it does not work."""
    remedy: str
    """How to make it work; empty if it works."""


def run_batch(graph: Graph, inputs: Arrays) -> dict[str, np.ndarray]:
    """Run a graph on arrays whose first axis is the batch, image by image if that axis is fixed to 1."""
    count = len(next(iter(inputs.values())))
    if not graph.one_at_a_time or count == 1:
        return graph.run(inputs)
    singles = [graph.run({name: array[i : i + 1] for name, array in inputs.items()}) for i in range(count)]
    return {name: np.concatenate([single[name] for single in singles]) for name in graph.output_names}
