"""Where a run computes, in which precision and in how many processes: Lightning Fabric, and what it leaves to us.

One process on the CPU or a GPU, or as many as torchrun starts on one node or several: the same calls, the same
results. Every process holds the whole model and all captions; it computes a share of each batch.
"""

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments import ClusterEnvironment, LightningEnvironment, TorchElasticEnvironment
from lightning_fabric.strategies import DDPStrategy
from lightning_fabric.wrappers import _FabricModule
from torch import Tensor, distributed, nn

T = TypeVar("T")

# While the first process extracts features or reads a checkpoint the others wait; a process that died is noticed by
# torchrun, not by this limit.
PATIENCE = timedelta(hours=6)

# What torchrun tells a process of its machine, and what holds without it.
_LOCAL = (("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "1"))


class EngineError(Exception):
    """The device or the processes asked for are not there; the message says what to do."""


class OtherProcessError(Exception):
    """Another process of the run failed, and says itself why."""


def multiplies_bf16(device: torch.device) -> bool:
    """Whether a device has bf16 matrix instructions, so that autocast pays."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def choose_device(name: str) -> torch.device:
    """The device of this process.

    Args:
        name: ``auto`` (a GPU for every process of this machine if there are as many, else the CPU), ``cpu``, ``cuda``
            or, for a single process, ``cuda:N``.

    Raises:
        EngineError: there is no such device, or there are fewer than processes.
    """
    rank, processes = (int(os.environ.get(key, default)) for key, default in _LOCAL)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and count < processes):
        return torch.device("cpu")
    if name not in ("auto", "cuda") and not re.fullmatch(r"cuda:\d+", name):
        raise EngineError(f"device must be auto, cpu, cuda or cuda:N, not {name!r}")
    if not count:
        raise EngineError(f"torch sees no CUDA device for {name}; leave --device out for the CPU")
    if processes > count:
        raise EngineError(f"{processes} processes on this machine but {count} GPUs; lower --nproc-per-node")
    _, _, number = name.partition(":")
    if number and processes > 1:
        raise EngineError(f"device {name} is for one process; give cuda, and every process takes a GPU of its own")
    index = int(number) if number else rank
    if index >= count:
        raise EngineError(f"there is no {name}: torch sees {count} GPUs, counted from 0")
    return torch.device("cuda", index)


def check_compiler(device: torch.device) -> None:
    """See early that torch.compile finds what it needs.

    Raises:
        EngineError: it does not; the message has its reason.
    """
    try:
        torch.compile(torch.sin)(torch.zeros(2, device=device))
    except Exception as error:  # of many kinds
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise EngineError(f"compile: torch.compile does not work here ({reason}); set compile: false") from None


class Engine:
    """Device, precision and processes of a run."""

    def __init__(self, device: torch.device, precision: str) -> None:
        """Take this process' place among those that torchrun started, if it did.

        Args:
            device: of this process.
            precision: ``fp32``, ``bf16`` or ``auto``, as in an experiment file.
        """
        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
        self.local_processes = 1
        """Of this machine."""
        environment: ClusterEnvironment = LightningEnvironment()
        if TorchElasticEnvironment.detect():
            self.local_processes, environment = int(os.environ["LOCAL_WORLD_SIZE"]), TorchElasticEnvironment()
        self.device, self.processes = device, environment.world_size()
        self.bf16 = precision == "bf16" or (precision == "auto" and multiplies_bf16(device))
        on_gpu = device.type == "cuda"
        strategy = DDPStrategy(
            # What is no gradient (errors, figures, files) goes from CPU to CPU, and no GPU waits for it.
            process_group_backend="cpu:gloo,cuda:nccl" if on_gpu else "gloo",
            timeout=PATIENCE,
            broadcast_buffers=False,  # they are constants
        )
        self._fabric = Fabric(
            accelerator="cuda" if on_gpu else "cpu",
            devices=[device.index] if on_gpu and self.processes == 1 else self.local_processes,
            num_nodes=max(1, self.processes // self.local_processes),
            strategy=strategy if self.processes > 1 else "auto",
            precision="bf16-mixed" if self.bf16 else "32-true",
            plugins=[environment],
        )
        self._fabric.launch()
        self.rank = self._fabric.global_rank
        self._failed_together = False

    @property
    def is_first(self) -> bool:
        """Whether this process writes the files and talks to the user."""
        return self.rank == 0

    def close(self) -> None:
        """Take leave of the other processes."""
        if distributed.is_initialized():
            if self._failed_together:
                # torchrun ends all when one has left: not before the one that says why has said it, or died of it.
                with suppress(RuntimeError):
                    distributed.all_reduce(torch.zeros(1))
            distributed.destroy_process_group()

    def has_lost(self, error: RuntimeError) -> bool:
        """Whether ``error`` says that another process is gone."""
        return self.processes > 1 and (isinstance(error, distributed.DistError) or "gloo" in str(error))

    # -- the model -----------------------------------------------------------------------------------------

    def set_up(self, module: nn.Module) -> _FabricModule:
        """``module`` on the device; its forward in the run's precision, its backward with everyone's gradients."""
        return self._fabric.setup_module(module)

    def autocast(self) -> AbstractContextManager[Any]:
        """The run's precision, for what is not called through :meth:`set_up`."""
        return self._fabric.autocast()

    def without_sum(self, module: _FabricModule) -> AbstractContextManager[Any]:
        """Forward and backward passes whose gradients stay in this process, to be summed with a later one's."""
        return self._fabric.no_backward_sync(module)

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of the sum of all processes' losses, in every process."""
        # The strategy takes the mean.
        self._fabric.backward(loss * self.processes)

    def to_device(self, batch: T) -> T:
        """``batch`` with its tensors on the device."""
        return self._fabric.to_device(batch)

    # -- the processes -------------------------------------------------------------------------------------

    def sum(self, values: Sequence[float]) -> list[float]:
        """Each value summed over the processes."""
        if self.processes == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(tensor)
        return tensor.tolist()

    def gather(self, value: T) -> list[T]:
        """Every process' value, in each."""
        if self.processes == 1:
            return [value]
        values: list[Any] = [None] * self.processes
        distributed.all_gather_object(values, value)
        return values

    def from_first(self, function: Callable[[], T]) -> T:
        """What ``function`` returns in the first process, which alone calls it, in each; tensors on the CPU."""
        with self.together():
            value = function() if self.is_first else None
        return self._fabric.broadcast(value)  # type: ignore[return-value]

    def in_turn(self, function: Callable[[], object]) -> None:
        """Call ``function`` in the first process, then in the first of every machine, then in the others.

        For what makes a file that the others then find.
        """
        mine = 0 if self.is_first else 1 if self._fabric.local_rank == 0 else 2
        for turn in range(3):
            with self.together():
                if turn == mine:
                    function()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What every process does, without waiting for another; when it fails in one, none goes on.

        Raises:
            OtherProcessError: it failed elsewhere too. Only the first process in which it failed raises the error
                itself, so that it is told once.
        """
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            if self.processes == 1:
                raise
            failure = error
        if self.processes == 1:
            return
        first = torch.tensor(self.rank if failure else self.processes)
        distributed.all_reduce(first, distributed.ReduceOp.MIN)
        if first < self.processes:
            self._fail(failure, int(first))

    def fail(self, error: Exception) -> NoReturn:
        """Raise what all processes have found at the same place, once."""
        self._fail(error, 0)

    def _fail(self, error: Exception | None, first: int) -> NoReturn:
        self._failed_together = True
        if error and self.rank == first:
            raise error
        raise OtherProcessError(f"process {first} failed") from error
