"""Device, precision and processes of a run.

A run is one process on the CPU or a GPU, or as many as torchrun starts on one machine or several; the calls and the
results are the same. Every process has the whole model and all captions, and computes a part of each batch.
"""

import gc
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from itertools import islice
from typing import Any, NoReturn, TypeVar

import torch

# Imported before the process group exists: these functions bind the current group as a default argument, and it could
# then never be closed.
import torch.distributed.nn.functional
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_map_only

T = TypeVar("T")

PRECISIONS: dict[str, torch.dtype | None] = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
"""Types of products by the precision of a run; None: no autocast."""

# The other processes wait while the first one tokenises captions or reads a checkpoint. torchrun notices a process that
# has died, not this limit.
TIMEOUT = timedelta(hours=6)


class DeviceError(Exception):
    """The device or the processes asked for do not exist; the message says what to do."""


class OtherProcessError(Exception):
    """Another process of the run failed, and reports the reason."""


def choose_device(name: str) -> torch.device:
    """Choose the device of this process.
    ``name``: ``auto`` (a GPU for every process of this machine if there are enough, else the CPU), ``cpu``, ``cuda``
    or, for a single process, ``cuda:N``.

    Raises:
        DeviceError: there is no such device, or there are fewer devices than processes.
    """
    rank, processes = _local_place()
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


def _local_place() -> tuple[int, int]:
    """Return the number of this process on its machine and the number of processes there, as set by torchrun."""
    return int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


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

    def __init__(self, device: torch.device) -> None:
        """Connect to the other processes that torchrun has started, if any."""
        self.device = device
        self.precision = "fp32"
        """A key of :data:`PRECISIONS`, in which :meth:`autocast` computes; the same in all processes."""
        if device.type != "cpu":
            torch.cuda.set_device(device)
            torch.set_float32_matmul_precision("high")  # TF32 where products stay in float32
        by_torchrun = distributed.is_torchelastic_launched()
        if by_torchrun:
            # Errors, losses and files are sent from CPU to CPU, so that no GPU waits for them.
            distributed.init_process_group("gloo" if device.type == "cpu" else "cpu:gloo,cuda:nccl", timeout=TIMEOUT)
        self.rank = distributed.get_rank() if by_torchrun else 0
        """Number of this process, from 0."""
        self.count = distributed.get_world_size() if by_torchrun else 1
        """Number of processes on all machines."""
        self._local_rank, self.on_this_machine = _local_place() if by_torchrun else (0, 1)
        """Number of this process on its machine, and number of processes there."""
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
            # The group's threads end with the last reference to it, and wrapped modules refer to it. They
            # must end before Python: a thread that releases a tensor while Python finalizes aborts the process.
            gc.collect()
            distributed.destroy_process_group()

    def is_lost_connection(self, error: RuntimeError) -> bool:
        """Return whether an error means that another process has ended."""
        return self.count > 1 and (isinstance(error, distributed.DistError) or "gloo" in str(error))

    # -- the model -----------------------------------------------------------------------------------------

    def wrap(self, module: nn.Module) -> nn.Module:
        """Move a module to the device; the backward pass of its results sums the gradients over all processes.

        The sum of a part of the gradients begins as soon as they are there, while the backward pass goes on.
        """
        module.to(self.device)
        if self.count == 1:
            return module
        with warnings.catch_warnings():
            # The option that new versions recommend, forward_sync_buffers, also copies buffers once at the beginning.
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            return DistributedDataParallel(
                module,
                device_ids=[self.device] if self.device.type == "cuda" else None,
                broadcast_buffers=False,  # the trainer synchronises those whose policy says so
                gradient_as_bucket_view=True,  # saves a copy of all gradients
            )

    def autocast(self) -> AbstractContextManager[Any]:
        """Compute in the run's precision."""
        kind = PRECISIONS[self.precision]
        return nullcontext() if kind is None else torch.autocast(self.device.type, kind)

    def new_scaler(self) -> torch.amp.GradScaler:
        """Make the scaler of gradients, which changes nothing but in fp16, whose small numbers are zero."""
        return torch.amp.GradScaler(self.device.type, enabled=self.precision == "fp16")

    def seed(self, seed: int) -> None:
        """Seed the random numbers of torch on the CPU and on the device."""
        # torch.manual_seed() seeds all kinds of devices, at a hundred times the cost where there are none.
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def without_gradient_sum(self, module: nn.Module) -> AbstractContextManager[Any]:
        """Keep the gradients of the passes inside in this process; the next backward pass outside sums them, too."""
        return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of the sum of all processes' losses to the parameters of every process."""
        # DistributedDataParallel divides the sum of the gradients by the number of processes.
        (loss * self.count).backward()

    def pin(self, batch: T) -> T:
        """Copy the tensors of a batch to memory from which a GPU reads by itself; called by the threads that read."""
        if self.device.type == "cpu":
            return batch
        pinned: T = tree_map_only(Tensor, Tensor.pin_memory, batch)
        return pinned

    def to_device(self, batch: T) -> T:
        """Move the tensors of a batch to the device, in the background if they are from :meth:`pin`."""
        if self.device.type == "cpu":
            return batch
        moved: T = tree_map_only(Tensor, lambda tensor: tensor.to(self.device, non_blocking=True), batch)
        return moved

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
        if self.count == 1:
            return value  # type: ignore[return-value]
        values: list[Any] = [value]
        distributed.broadcast_object_list(values, src=0, device=torch.device("cpu"))
        return values[0]

    def broadcast_tensors(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors, in place, with those of the first process."""
        if self.count > 1:
            for tensor in tensors:
                distributed.broadcast(tensor, src=0)

    def run_in_turns(self, function: Callable[[], object]) -> None:
        """Call ``function`` in the first process, then in the first of every machine, then in the others.

        For functions that write a file which the other processes then find.
        """
        mine = 0 if self.is_first else 1 if self._local_rank == 0 else 2
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
            failure = error
        first = torch.tensor(self.rank if failure else self.count)
        if self.count > 1:
            distributed.all_reduce(first, distributed.ReduceOp.MIN)
        if first < self.count:
            self._fail(failure, int(first))

    def in_all(self, values: Iterator[T]) -> Iterator[T]:
        """Yield the values of an iterator, as many in every process, until it fails in one process.

        Raises:
            OtherProcessError: as :meth:`fail_in_all`.
        """
        while True:
            with self.fail_in_all():
                taken = list(islice(values, 1))
            if not taken:
                return
            yield taken[0]

    def fail(self, error: Exception) -> NoReturn:
        """Raise an error that all processes have found at the same place; only the first process reports it."""
        self._fail(error, 0)

    def _fail(self, error: Exception | None, first: int) -> NoReturn:
        self._all_failed = True
        if error and self.rank == first:
            raise error
        raise OtherProcessError(f"process {first} failed") from error
