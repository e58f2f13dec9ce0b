"""What an inference engine is to the rest of the package."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

Arrays = Mapping[str, np.ndarray]


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
