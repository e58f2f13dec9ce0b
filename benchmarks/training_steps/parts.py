"""Timers around functions of the training code: the time of a step by part, each moment counted once."""

import functools
import importlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

WAITING, ENCODER, TEACHER_FORCING = "waiting for the batch", "encoder", "teacher-forced pass"
OPTIMIZER, REST = "optimizer", "rest"
PLACES: dict[str, tuple[str, ...]] = {
    "copy to the device": (
        "training.engine.distributed:Processes.to_device",
        "training.engine:Engine.to_device",
    ),
    "visual tokens": (
        "training.data.photograph_inputs:Photographs.visual",
        "training.data.stored_features:StoredFeatures.visual",
        "training.visual_inputs:Photographs.tokens",
        "training.visual_inputs:StoredFeatures.tokens",
    ),
    "sampling search": (
        "training.objectives.self_critical:search_captions",
        "training.objectives.self_critical:beam_search",
        "benchmarks.published_training:published_search",
    ),
    "reward": (
        "training.evaluation.metrics.cider_d:CiderD.score",
        "training.objectives.cider_d:CiderD.score",
        "benchmarks.published_reward:PublishedCiderD.score",
    ),
    "prefix trees of samples": ("training.objectives.self_critical:prefix_trees",),
    "loss": (
        "training.objectives.cross_entropy:cross_entropy",
        "training.objectives.self_critical:log_probabilities",
        "training.objectives.self_critical:self_critical_loss",
    ),
    "backward": (
        "training.engine.distributed:Processes.backward",
        "training.engine:Engine.backward",
        "torch:Tensor.backward",
    ),
    "clipping": ("training.engine.step:clip_gradient", "torch.nn.utils:clip_grad_norm_"),
    "moving average": (
        "training.engine.moving_average:WeightAverage.update",
        "training.averaging:WeightAverage.update",
    ),
    "logging": (
        "training.engine.results:ResultReader.read",
        "training.engine.reporting:RunReport.advance",
        "training.engine.reporting:RunReport.log",
        "training.engine.reporting:RunReport.step",
        "training.reporting:RunReport.step",
    ),
}
"""Functions of each part, as MODULE:NAME, of all known commits; a commit has some of them. Parts may be nested: time in
an inner one does not count for the outer one."""
READERS = (
    "training.engine.trainer:load_ahead",
    "training.trainer:load_ahead",
    "benchmarks.published_training:load_ahead",
)
"""Functions that return the iterator of batches; waiting is the time of its ``next``."""
ORDER = (
    WAITING,
    "copy to the device",
    "visual tokens",
    ENCODER,
    "sampling search",
    "reward",
    "prefix trees of samples",
    TEACHER_FORCING,
    "loss",
    "backward",
    "clipping",
    OPTIMIZER,
    "moving average",
    "logging",
    REST,
)
"""All parts, as reports list them."""


def replace_function(place: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> bool:
    """Replace a function or method by a wrapped one.

    Args:
        place: MODULE:NAME or MODULE:CLASS.NAME.
        wrap: called with the function.

    Returns:
        False if there is no such module or name.
    """
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    try:
        owner = importlib.import_module(module)
    except ModuleNotFoundError:
        return False
    for each in owners:
        owner = getattr(owner, each, None)  # type: ignore[assignment]
    function = getattr(owner, name, None)
    if function is None:
        return False
    setattr(owner, name, wrap(function))
    return True


class PartTimes:
    """Seconds by part, summed between :meth:`begin` and :meth:`end`; without them the timers do nothing."""

    def __init__(self, synchronise: Callable[[], None]) -> None:
        """
        Args:
            synchronise: waits for the device, so that its work counts for the part that asked for it.
        """
        self._synchronise = synchronise
        self._active, self._thread = False, threading.get_ident()
        self._seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

    def install(self) -> None:
        """Put timers around all functions of :data:`PLACES` and :data:`READERS` that exist, and the optimizers."""
        for part, places in PLACES.items():
            for place in places:
                replace_function(place, functools.partial(self.timed, part))
        for place in READERS:
            replace_function(place, self._reading)
        register_optimizer_step_pre_hook(self._begin_optimizer)
        register_optimizer_step_post_hook(lambda *_: self._leave())

    def install_in_family(self, family: type) -> None:
        """Put timers around encoder and teacher forcing of a captioner's class."""
        for part, name in ((ENCODER, "encode"), (TEACHER_FORCING, "forward"), (TEACHER_FORCING, "decode_tree")):
            place = f"{family.__module__}:{family.__qualname__}.{name}"
            replace_function(place, functools.partial(self.timed, part))

    def begin(self) -> None:
        """Start to sum, from zero."""
        self._active, self._seconds = True, {}
        self._since = time.perf_counter()

    def end(self) -> dict[str, float]:
        """Stop, and return the seconds of each part that took any; the rest is :data:`REST`."""
        self._charge()
        self._active = False
        return self._seconds

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its time counts for a part."""

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            with self._inside(part):
                return function(*arguments, **named)

        return call

    def _reading(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def read(*arguments: Any, **named: Any) -> Iterator[Any]:
            batches = function(*arguments, **named)
            try:
                while True:
                    with self._inside(WAITING):
                        batch = next(batches, None)
                    if batch is None:
                        return
                    yield batch
            finally:
                batches.close()

        return read

    def _begin_optimizer(self, *_: Any) -> None:
        self._enter(OPTIMIZER)

    @contextmanager
    def _inside(self, part: str) -> Iterator[None]:
        entered = self._enter(part)
        try:
            yield
        finally:
            if entered:
                self._leave()

    def _enter(self, part: str) -> bool:
        if not self._active or threading.get_ident() != self._thread:
            return False
        self._charge()
        self._open.append(part)
        return True

    def _leave(self) -> None:
        if self._active and self._open:
            self._charge()
            self._open.pop()

    def _charge(self) -> None:
        self._synchronise()
        now = time.perf_counter()
        part = self._open[-1] if self._open else REST
        self._seconds[part] = self._seconds.get(part, 0.0) + now - self._since
        self._since = now
