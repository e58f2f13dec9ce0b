"""Device, precision and processes of a run, by Lightning Fabric.

A run is one process on the CPU or a GPU, or as many as torchrun starts on one machine or several; the calls and the
results are the same. Every process has the whole model and all captions, and computes a part of each batch.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments import ClusterEnvironment, LightningEnvironment, TorchElasticEnvironment
from lightning_fabric.strategies import DDPStrategy
from lightning_fabric.wrappers import _FabricModule
from torch import Tensor, distributed, nn

from training.engine.allocator import keep_freed_memory

T = TypeVar("T")

# The other processes wait while the first one extracts features or reads a checkpoint. torchrun notices a process that
# has died, not this limit.
TIMEOUT = timedelta(hours=6)

_LOCAL = (("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "1"))
"""Variables in which torchrun tells a process its place on its machine, and their values without torchrun."""


class DeviceError(Exception):
    """The device or the processes asked for do not exist; the message says what to do."""


class OtherProcessError(Exception):
    """Another process of the run failed, and reports the reason."""


def has_bf16_instructions(device: torch.device) -> bool:
    """Return whether a device has bf16 matrix instructions, so that autocast saves time."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def choose_device(name: str) -> torch.device:
    """Choose the device of this process.

    Args:
        name: ``auto`` (a GPU for every process of this machine if there are enough, else the CPU), ``cpu``, ``cuda``
            or, for a single process, ``cuda:N``.

    Raises:
        DeviceError: there is no such device, or there are fewer devices than processes.
    """
    rank, processes = (int(os.environ.get(key, default)) for key, default in _LOCAL)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and count < processes):
        return torch.device("cpu")
    if name not in ("auto", "cuda") and not re.fullmatch(r"cuda:\d+", name):
        raise DeviceError(f"device must be auto, cpu, cuda or cuda:N, not {name!r}")
    if not count:
        raise DeviceError(f"torch sees no CUDA device for {name}; leave --device out for the CPU")
    if processes > count:
        raise DeviceError(f"{processes} processes on this machine but {count} GPUs; lower --nproc-per-node")
    _, _, number = name.partition(":")
    if number and processes > 1:
        raise DeviceError(f"device {name} is for one process; give cuda, and every process takes a GPU of its own")
    index = int(number) if number else rank
    if index >= count:
        raise DeviceError(f"there is no {name}: torch sees {count} GPUs, counted from 0")
    return torch.device("cuda", index)


def check_compiler(device: torch.device) -> None:
    """Check that torch.compile works here, before minutes of preparation.

    Raises:
        DeviceError: it does not work; the message has its reason.
    """
    try:
        torch.compile(torch.sin)(torch.zeros(2, device=device))
    except Exception as error:  # the compiler raises many kinds
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise DeviceError(f"compile: torch.compile does not work here ({reason}); set compile: false") from None


class Processes:
    """Device, precision and processes of a run."""

    def __init__(self, device: torch.device, precision: str) -> None:
        """Connect to the other processes that torchrun has started, if any.

        Args:
            device: device of this process.
            precision: ``fp32``, ``bf16`` or ``auto``, as in an experiment file.
        """
        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
        self.on_this_machine = 1
        """Number of processes on this machine."""
        environment: ClusterEnvironment = LightningEnvironment()
        if TorchElasticEnvironment.detect():
            self.on_this_machine, environment = int(os.environ["LOCAL_WORLD_SIZE"]), TorchElasticEnvironment()
        self.device = device
        if device.type == "cpu":
            keep_freed_memory()
        self.count = environment.world_size()
        """Number of processes on all machines."""
        self.bf16 = precision == "bf16" or (precision == "auto" and has_bf16_instructions(device))
        on_gpu = device.type == "cuda"
        strategy = DDPStrategy(
            # Errors, losses and files are sent from CPU to CPU, so that no GPU waits for them.
            process_group_backend="cpu:gloo,cuda:nccl" if on_gpu else "gloo",
            timeout=TIMEOUT,
            broadcast_buffers=False,  # the trainer synchronises those whose policy says so
        )
        self._fabric = Fabric(
            accelerator="cuda" if on_gpu else "cpu",
            devices=[device.index] if on_gpu and self.count == 1 else self.on_this_machine,
            num_nodes=max(1, self.count // self.on_this_machine),
            strategy=strategy if self.count > 1 else "auto",
            precision="bf16-mixed" if self.bf16 else "32-true",
            plugins=[environment],
        )
        self._fabric.launch()
        self.rank = self._fabric.global_rank
        self._all_failed = False

    @property
    def is_first(self) -> bool:
        """Whether this process writes the files and reports to the user."""
        return self.rank == 0

    def close(self) -> None:
        """Disconnect from the other processes."""
        if distributed.is_initialized():
            if self._all_failed:
                # torchrun ends all processes when the first one has ended: wait for the one that reports the reason.
                with suppress(RuntimeError):
                    distributed.all_reduce(torch.zeros(1))
            distributed.destroy_process_group()

    def is_lost_connection(self, error: RuntimeError) -> bool:
        """Return whether an error means that another process has ended."""
        return self.count > 1 and (isinstance(error, distributed.DistError) or "gloo" in str(error))

    # -- the model -----------------------------------------------------------------------------------------

    def wrap(self, module: nn.Module) -> _FabricModule:
        """Move a module to the device; its forward has the run's precision, its backward sums over all processes."""
        return self._fabric.setup_module(module)

    def autocast(self) -> AbstractContextManager[Any]:
        """Compute in the run's precision; for modules that are not called through :meth:`wrap`."""
        return self._fabric.autocast()

    def without_gradient_sum(self, module: _FabricModule) -> AbstractContextManager[Any]:
        """Keep the gradients of the passes inside in this process; the next backward pass outside sums them, too."""
        return self._fabric.no_backward_sync(module)

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of the sum of all processes' losses to the parameters of every process."""
        # The strategy divides the sum of the gradients by the number of processes.
        self._fabric.backward(loss * self.count)

    def to_device(self, batch: T) -> T:
        """Move the tensors of a batch to the device."""
        return self._fabric.to_device(batch)

    # -- the processes -------------------------------------------------------------------------------------

    def sum(self, values: Sequence[float]) -> list[float]:
        """Sum each value over the processes."""
        if self.count == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(tensor)
        return tensor.tolist()

    def gather(self, value: T) -> list[T]:
        """Collect the values of all processes, in each of them."""
        if self.count == 1:
            return [value]
        values: list[Any] = [None] * self.count
        distributed.all_gather_object(values, value)
        return values

    def from_first(self, function: Callable[[], T]) -> T:
        """Call ``function`` in the first process and return its result in all; tensors must be on the CPU."""
        with self.fail_in_all():
            value = function() if self.is_first else None
        return self._fabric.broadcast(value)  # type: ignore[return-value]

    def broadcast_tensors(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors, in place, with those of the first process."""
        if self.count > 1:
            for tensor in tensors:
                distributed.broadcast(tensor, src=0)

    def first_process_first(self, function: Callable[[], object]) -> None:
        """Call ``function`` in the first process, then in the first of every machine, then in the others.

        For functions that write a file which the other processes then find.
        """
        mine = 0 if self.is_first else 1 if self._fabric.local_rank == 0 else 2
        for turn in range(3):
            with self.fail_in_all():
                if turn == mine:
                    function()

    @contextmanager
    def fail_in_all(self) -> Iterator[None]:
        """Stop every process when the ``with`` block fails in one; the block itself must not communicate.

        Raises:
            OtherProcessError: the block failed in another process. Only the first process in which it failed raises
                the error itself, so that it is reported once.
        """
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            if self.count == 1:
                raise
            failure = error
        if self.count == 1:
            return
        first = torch.tensor(self.rank if failure else self.count)
        distributed.all_reduce(first, distributed.ReduceOp.MIN)
        if first < self.count:
            self._fail(failure, int(first))

    def fail(self, error: Exception) -> NoReturn:
        """Raise an error that all processes have found at the same place; only the first process reports it."""
        self._fail(error, 0)

    def _fail(self, error: Exception | None, first: int) -> NoReturn:
        self._all_failed = True
        if error and self.rank == first:
            raise error
        raise OtherProcessError(f"process {first} failed") from error
