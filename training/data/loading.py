"""The order of images, their division among processes, and reading batches ahead of the training step.

Threads of ``concurrent.futures`` read ahead, not ``torch.utils.data`` or ``torchdata``: worker processes cannot share
open zip and HDF5 files, and both libraries replace the sentence of a :class:`DataError` by the traceback of a worker.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

Key = TypeVar("Key")
Value = TypeVar("Value")


def shuffle(costs: np.ndarray, batch: int, random: np.random.Generator) -> np.ndarray:
    """Draw a random order in which the images of a batch have similar costs, for less padding.

    Args:
        costs: (images,) work of a step for each image, in any unit.
        batch: images a batch; batch k of the order begins at ``k * batch``.

    Returns:
        (images,) integers, the indices in that order.
    """
    order = random.permutation(len(costs))
    pools = [order[start : start + 20 * batch] for start in range(0, len(order), 20 * batch)]
    batches = []
    for pool in pools:
        pool = pool[np.argsort(costs[pool], kind="stable")]
        batches += [pool[start : start + batch] for start in range(0, len(pool), batch)]
    # Only the last batch may be short, and it stays last, so that batch k begins at k * batch.
    last = batches.pop()
    return np.concatenate([*(batches[k] for k in random.permutation(len(batches))), last])


def divide_batch(images: np.ndarray, costs: np.ndarray, accumulate: int, rank: int, processes: int) -> list[np.ndarray]:
    """Divide a batch among processes, and the part of a process into shares for gradient accumulation.

    The costs of the processes are as equal as sizes that differ by at most one image allow: a process waits for the
    others at the end of the step, and the memory of a share grows with its images. Every process has the same number
    of shares, because all take part in the sum of the gradients at the last one. In a short batch the last share of a
    process may be empty.

    Args:
        images: (B,) integers, the whole batch.
        costs: (B,) work of a step for each image, in any unit.
        accumulate: shares a process; fewer in a short batch.

    Returns:
        1 to ``accumulate`` arrays, the shares of this process.
    """
    turns = -(-min(len(images), accumulate * processes) // processes)
    own = balanced_parts(costs, processes)[rank]
    return [images[own[part]] for part in balanced_parts(costs[own], turns)]


def balanced_parts(costs: np.ndarray, parts: int) -> list[np.ndarray]:
    """Divide items into parts of nearly the same cost, whose sizes differ by at most one item.

    Items are dealt in rounds from the costliest to the cheapest; in each round the part with the lowest sum so far gets
    the costliest item. The parts with one item more than the others have it from the last, cheapest round.

    Args:
        costs: (N,) costs of the items.
        parts: number of parts; if it is greater than N, the last ones are empty.

    Returns:
        ``parts`` arrays of integers: the items of each part, in ascending order.
    """
    order = np.argsort(-costs, kind="stable")
    part_of, sums = np.zeros(len(costs), int), np.zeros(parts)
    for start in range(0, len(costs), parts):
        dealt = order[start : start + parts]
        part_of[dealt] = takers = np.argsort(sums, kind="stable")[: len(dealt)]
        sums[takers] += costs[dealt]
    return [np.flatnonzero(part_of == part) for part in range(parts)]


def load_ahead(load: Callable[[Key], Value], keys: Iterable[Key], threads: int) -> Generator[Value, None, None]:
    """Yield ``load(key)`` for each key in order, while threads load the following keys.

    The values and their order do not depend on the number of threads. An exception of ``load`` is raised in the place
    of its key. Close the iterator unless it is exhausted.
    ``threads``: number of keys that are loaded at the same time; at most twice as many values wait to be taken.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="load")
    waiting: deque[Future[Value]] = deque()
    try:
        for key in keys:
            waiting.append(pool.submit(load, key))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def loading_threads(processes: int) -> int:
    """Choose the number of reading threads of each process: the cores of the machine, shared by its processes."""
    return max(1, min(8, (os.cpu_count() or 1) // processes))
