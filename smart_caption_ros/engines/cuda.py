"""Calls of the CUDA runtime through cuda-python, with exceptions.

Written from the documentation of cuda-python 12 and 13; not yet run on a GPU.
"""

from typing import Any

from smart_caption_ros.engines.base import EngineError


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
