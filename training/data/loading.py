"""Which images make a batch, who computes which of them, and reading them before they are needed."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

Key = TypeVar("Key")
Value = TypeVar("Value")


def shuffle(lengths: np.ndarray, batch: int, random: np.random.Generator) -> np.ndarray:
    """A random order in which the images of a batch have captions of like length: less padding to compute.

    Args:
        lengths: (images,), of each image's longest caption.
        batch: images a batch; batch k of the order begins at ``k * batch``.

    Returns:
        (images,) integers.
    """
    order = random.permutation(len(lengths))
    pools = [order[start : start + 20 * batch] for start in range(0, len(order), 20 * batch)]
    batches = []
    for pool in pools:
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[start : start + batch] for start in range(0, len(pool), batch)]
    # Only the last batch may be short, and it stays last, so that batch k begins at k * batch.
    last = batches.pop()
    return np.concatenate([*(batches[k] for k in random.permutation(len(batches))), last])


def split(images: np.ndarray, accumulate: int, rank: int, processes: int) -> list[np.ndarray]:
    """What one process computes of a batch, in the order in which it does.

    Every process gets as many shares, so that all meet at the last one; their sizes differ by one at most. In a
    batch too short to go round the last share of a process may be empty.

    Args:
        images: (B,) of the whole batch, with like lengths beside one another.
        accumulate: shares a process, fewer if there is nothing for them.

    Returns:
        1 to ``accumulate`` arrays.
    """
    count = accumulate * processes
    rounds = -(-min(len(images), count) // processes)
    return [images[turn * processes + rank :: count] for turn in range(rounds)]


def load_ahead(load: Callable[[Key], Value], keys: Iterable[Key], threads: int) -> Generator[Value, None, None]:
    """``load`` of each key in turn, while the ones after it are being loaded.

    What is loaded, and in which order it comes, does not depend on the threads. An error comes in the place of its
    key. Close the iterator if it is not used up.

    Args:
        load: called in another thread.
        threads: as many keys are loaded at a time, and twice as many wait to be taken.
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
    """Threads that read for each of the machine's processes: decoding is spread over the cores that there are."""
    return max(1, min(8, (os.cpu_count() or 1) // processes))


def longest_captions(captions: Sequence[Sequence[Sequence[str]]], cut: int) -> np.ndarray:
    """(images,) words of each image's longest caption, at most ``cut``."""
    return np.array([min(cut, max(map(len, group))) for group in captions])
