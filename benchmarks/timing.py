"""Time variants alternately, so that other load on the machine affects all of them equally."""

import random as random_order
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

from smart_caption_ros.measuring.benchmark import spread

T = TypeVar("T")


def measure(
    variants: Mapping[str, Callable[[T], object]], inputs: Sequence[T], rounds: int
) -> dict[str, dict[str, float]]:
    """Measure wall and CPU milliseconds a call: medians, 5th and 95th percentiles.

    Each variant is called once as a warm-up. Then all variants are called for each input in random order, because the
    preceding call affects the CPU's caches and clock. CPU time is that of this process with all its threads; other load
    on the machine has little effect on it.
    """
    order, random = list(variants), random_order.Random(0)
    for run in variants.values():
        run(inputs[0])
    times: dict[str, dict[str, list[float]]] = {name: {"wall": [], "cpu": []} for name in variants}
    for _ in range(rounds):
        for given in inputs:
            random.shuffle(order)
            for name in order:
                wall, cpu = time.perf_counter(), time.process_time()
                variants[name](given)
                times[name]["wall"].append((time.perf_counter() - wall) * 1e3)
                times[name]["cpu"].append((time.process_time() - cpu) * 1e3)
    return {
        name: {
            **{f"{clock}_ms_{key}": value for clock in ("cpu", "wall") for key, value in spread(taken[clock]).items()},
            "calls": len(taken["wall"]),
        }
        for name, taken in times.items()
    }


def medians_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the median of each figure over the rounds; figures may be nested."""
    found: dict[str, Any] = {}
    for name, value in runs[0].items():
        values = [run[name] for run in runs]
        found[name] = medians_of(values) if isinstance(value, Mapping) else round(median(values), 3)
    return found
