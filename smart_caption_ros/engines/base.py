"""What an inference engine is to the rest of the package."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

Arrays = Mapping[str, np.ndarray]
GraphForm = Literal["dynamic", "static"]
"""``dynamic``: control flow and open axes; ``static``: neither."""


@dataclass(frozen=True)
class Tensor:
    """An input or output of a graph, as the graph declares it."""

    name: str
    shape: tuple[int | None, ...]
    """None where the size is open."""
    dtype: str
    """NumPy's name of the type, ``float32``."""

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} [{', '.join('?' if size is None else str(size) for size in self.shape)}]"


class Graph(Protocol):
    """A loaded ONNX graph."""

    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    one_at_a_time: bool
    """Whether the batch axis is fixed to 1; see :func:`run_batch`."""
    mode: str
    """How it runs where there is a choice, e.g. ``CUDA graph``, with the reason where it is the slower one."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: Mapping[str, str]
    """What the file's author wrote beside the graph; empty where the engine does not keep it."""

    def run(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """All outputs by name.

        Raises:
            EngineError: an input has a wrong name, shape or dtype, or the engine failed.
        """
        ...


class Engine(Protocol):
    """Loads graphs. One file of this folder and one line in its registry make an engine."""

    description: str
    """What really runs, e.g. ``onnxruntime 1.31.1 (CPUExecutionProvider)``."""
    graph_forms: tuple[GraphForm, ...]
    """The forms of a graph that this engine can run, fastest first."""

    def load(self, path: Path) -> Graph:
        """Load a graph of a checked bundle.

        Raises:
            EngineError: the file is no graph that this engine can run.
        """
        ...


@dataclass(frozen=True)
class EngineReport:
    """Whether an engine works on this machine, tried and not guessed."""

    name: str
    available: bool
    detail: str
    """What runs, or why it does not."""
    remedy: str
    """What to do about it; empty when it works."""


def run_batch(graph: Graph, inputs: Arrays) -> dict[str, np.ndarray]:
    """Run a graph on a batch, image by image where that is all that it takes.

    Args:
        inputs: arrays whose first axis is the batch.

    Raises:
        EngineError: as :meth:`Graph.run`.
    """
    count = len(next(iter(inputs.values())))
    if not graph.one_at_a_time or count == 1:
        return graph.run(inputs)
    singles = [graph.run({name: array[i : i + 1] for name, array in inputs.items()}) for i in range(count)]
    return {name: np.concatenate([single[name] for single in singles]) for name in graph.output_names}
