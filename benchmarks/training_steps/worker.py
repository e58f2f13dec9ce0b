"""A process that trains with the code of one checkout, and times its steps on request.

    python -m benchmarks.training_steps.worker

The checkout is the first folder of the import path; ``benchmarks`` in it is that of the measuring commit. The process
reads a command a line from stdin, as JSON with the key ``do``, and answers each with a line on stdout; see
:meth:`Worker.run`. While it waits for a command in the middle of a run, the run stands still.
"""

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.optim.optimizer import register_optimizer_step_post_hook

from benchmarks.training_steps.layouts import DECODERS, STEPS, build_trainer, captioner_of
from benchmarks.training_steps.parts import PLACES, PartTimes, replace_function

PUBLISHED = "benchmarks.published_training"
PADDING_ID = 0
"""Of the words of all commits."""


class _LoopStoppedError(Exception):
    """The run is over before its last step; not an error."""


class _Observations:
    """What the training code returned since :meth:`take`: losses, sampled words and the reward's time."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._losses: list[Any] = []
        self._words: list[Any] = []
        self._reward_seconds: list[float] = []
        self._decoded = 0

    def install(self) -> None:
        """Observe the functions of the checkout that compute steps and rewards."""
        for place in (*STEPS, f"{PUBLISHED}:PublishedTraining.differentiate"):
            replace_function(place, self._step)
        for place in PLACES["reward"]:
            replace_function(place, self._reward)

    def install_in_family(self, family: type) -> None:
        """Count the words that a captioner's class decodes."""
        for name in DECODERS:
            replace_function(f"{family.__module__}:{family.__qualname__}.{name}", self._decoder)

    def take(self) -> dict[str, Any]:
        """Return the observations as JSON values, and forget them."""
        taken: dict[str, Any] = {"losses": [float(loss) for loss in self._losses]}
        if self._words:
            lengths = [(np.asarray(words) != PADDING_ID).sum(axis=-1) for words in self._words]
            taken["caption_words"] = [float(each.mean()) for each in lengths]
            taken["longest_caption"] = [int(each.max()) for each in lengths]
            taken["reward_seconds"] = self._reward_seconds
        if self._decoded:
            taken["decoded_words"] = self._decoded
        self._clear()
        return taken

    def _step(self, differentiate: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            result = differentiate(*arguments, **named)
            self._losses.append(result.loss)
            return result

        return call

    def _reward(self, score: Callable[..., Any]) -> Callable[..., Any]:
        def call(corpus: Any, images: Any, words: Any, *more: Any) -> Any:
            started = time.perf_counter()
            scores = score(corpus, images, words, *more)
            self._reward_seconds.append(time.perf_counter() - started)
            self._words.append(words)
            return scores

        return call

    def _decoder(self, decode: Callable[..., Any]) -> Callable[..., Any]:
        def call(captioner: Any, words: Any, *arguments: Any, **named: Any) -> Any:
            before = self._decoded
            result = decode(captioner, words, *arguments, **named)
            if self._decoded == before:  # else it has called another decoder, which is counted
                self._decoded += getattr(words, "words", words).numel()
            return result

        return call


class Worker:
    """Carries out the commands of one parent process."""

    def __init__(self, commands: TextIO, answers: TextIO) -> None:
        self._commands, self._answers = commands, answers
        self._device = torch.device("cpu")
        self._parts, self._observations = PartTimes(self._synchronise), _Observations()
        # Timers outside: the time of observing a function counts for its part.
        self._observations.install()
        self._parts.install()
        self._families: set[type] = set()
        self._left = 0
        self._stop_after: int | None = None
        self._seconds: list[float] = []
        self._since = 0.0
        self._block: Mapping[str, Any] = {}
        self._profiler: Any = None
        register_optimizer_step_post_hook(lambda *_: self._end_of_step())

    def run(self) -> None:
        """Answer commands until stdin ends.

        ``teach``: train ``steps`` steps of ``experiment``, none if 0, and write the captioner's ``weights``.
        ``train``: build the trainer of ``experiment`` with the captioner's ``weights``, and train its first step.
        ``publish``: the same with the published recipe in place of the trainer.
        ``steps``: train ``count`` steps more; with ``parts`` their time by part; with ``trace`` torch's profile of them
        is written to that file.
        ``stop``: leave the run.

        An answer has ``error``, a sentence, if the command failed.
        """
        while (command := self._next()) is not None:
            try:
                answer = self._carry_out(command)
            except Exception as error:
                traceback.print_exc()
                answer = {"error": " ".join(str(error).split()) or type(error).__name__}
            self._answer(answer)

    def _carry_out(self, command: Mapping[str, Any]) -> dict[str, Any]:
        kind = command["do"]
        self._left = 0
        if kind == "publish":
            training = importlib.import_module(PUBLISHED).PublishedTraining
            loop = training(command["experiment"], Path(command["data"]), command["device"], command["precision"])
            captioner, families = loop.captioner, [type(loop.decoder)]
        else:
            loop = build_trainer(
                command["experiment"], Path(command["data"]), Path(command["folder"]), command["device"]
            )
            captioner = captioner_of(loop)
            families = [] if command["experiment"].get("compile") else [type(captioner)]
        for family in {*families} - self._families:  # a compiler could not look through the timers
            self._observations.install_in_family(family)
            self._parts.install_in_family(family)
            self._families.add(family)
        self._device = next(captioner.parameters()).device
        if kind != "teach":
            captioner.load_state_dict(load_file(command["weights"]))
        self._stop_after = command["steps"] if kind == "teach" else None
        if self._stop_after != 0:
            try:
                loop.run()
            except _LoopStoppedError:
                pass
            else:
                raise RuntimeError("the run ended before its steps were measured: it has too few images")
        if kind == "teach":
            save_file({name: value.contiguous() for name, value in captioner.state_dict().items()}, command["weights"])
        return self._observations.take()

    def _end_of_step(self) -> None:
        """Called at the end of every optimizer step: a step begins and ends here."""
        if self._stop_after is not None:
            self._stop_after -= 1
            if self._stop_after == 0:
                self._stop_after = None
                raise _LoopStoppedError
            return
        if self._left:
            self._left -= 1
            if self._left == 0:
                self._synchronise()
            now = time.perf_counter()
            self._seconds.append(now - self._since)
            self._since = now
            if self._left:
                return
        self._answer(self._end_of_block())
        self._begin_block(self._next())

    def _begin_block(self, command: Mapping[str, Any] | None) -> None:
        if command is None or command["do"] != "steps":
            raise _LoopStoppedError
        self._block, self._seconds, self._left = command, [], command["count"]
        if command.get("trace"):
            self._profiler = torch.profiler.profile()
            self._profiler.start()
        self._synchronise()
        if command.get("parts"):
            self._parts.begin()
        self._since = time.perf_counter()

    def _end_of_block(self) -> dict[str, Any]:
        answer: dict[str, Any] = {"seconds": self._seconds}
        if self._block.get("parts"):
            answer["parts"] = self._parts.end()
        if self._profiler is not None:
            self._profiler.stop()
            self._profiler.export_chrome_trace(self._block["trace"])
            self._profiler = None
        self._block = {}
        return answer | self._observations.take()

    def _synchronise(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _next(self) -> Mapping[str, Any] | None:
        line = self._commands.readline()
        return json.loads(line) if line else None

    def _answer(self, answer: Mapping[str, Any]) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()


def main() -> None:
    # Whatever the training code prints must not be taken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    Worker(sys.stdin, answers).run()


if __name__ == "__main__":
    main()
