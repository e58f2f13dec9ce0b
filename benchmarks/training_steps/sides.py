"""The processes that are measured in turns: the working tree's, and another commit's in a temporary checkout."""

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import TracebackType
from typing import Any

import benchmarks
from training.paths import CHECKOUT

WORKER = "benchmarks.training_steps.worker"
_CODE = ("smart_caption_ros", "training")
"""Folders of another commit's checkout."""


class MeasurementError(Exception):
    """A measurement is not possible; the message is one sentence."""


class Side:
    """A process with the code of one checkout; use it in a ``with`` statement."""

    def __init__(self, name: str, checkout: Path, log: Path, threads: int | None) -> None:
        """
        Args:
            name: name of the code in messages.
            checkout: folder that is put first on the import path.
            log: file for whatever the process prints.
            threads: CPU threads; None: torch's default.
        """
        self.name, self._log = name, log
        path = os.pathsep.join(filter(None, [str(checkout), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path}
        if threads:
            environment["OMP_NUM_THREADS"] = str(threads)
        with log.open("w") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", WORKER],
                cwd=checkout,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
            )

    def ask(self, what: str, **options: Any) -> dict[str, Any]:
        """Send a command of :class:`benchmarks.training_steps.worker.Worker`, and wait for the answer.

        Raises:
            MeasurementError: the command failed, or the process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, **options}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            printed = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
            last = next((each for each in reversed(printed) if each.strip()), "it printed nothing")
            raise MeasurementError(f"{self.name}: the process that trains has ended: {last.strip()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise MeasurementError(f"{self.name}: {answer['error']}")
        return answer

    def __enter__(self) -> "Side":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._process.kill()
        self._process.communicate()  # closes stdin, at which the process ends


def extract_commit(commit: str, folder: Path) -> Path:
    """Write another commit's code below ``folder``, with this commit's ``benchmarks`` beside it.

    Returns:
        The folder to put on the import path.

    Raises:
        MeasurementError: there is no such commit, or it has no training code.
    """
    name = ("--end-of-options", f"{commit}^{{commit}}")
    found = _git("rev-parse", "--verify", "--quiet", *name, problem=f"{commit}: no such commit").decode().strip()
    archive = _git("archive", found, *_CODE, problem=f"{commit}: it has not the folders {' and '.join(_CODE)}")
    checkout = folder / "checkout"
    checkout.mkdir()
    with tarfile.open(fileobj=io.BytesIO(archive)) as stream:
        stream.extractall(checkout, filter="data")
    (checkout / "benchmarks").symlink_to(Path(benchmarks.__file__).parent)
    return checkout


def describe_commit() -> str:
    """Return the working tree's commit, marked if files of it have changed."""
    try:
        return _git("describe", "--always", "--dirty", "--exclude=*", problem="").decode().strip()
    except MeasurementError:
        return "unknown"


def _git(*arguments: str, problem: str) -> bytes:
    try:
        found = subprocess.run(["git", "-C", str(CHECKOUT), *arguments], capture_output=True, check=False)
    except OSError as error:
        raise MeasurementError(f"git: {error.strerror}") from None
    if found.returncode:
        reason = found.stderr.decode(errors="replace").strip().split("\n")[-1]
        raise MeasurementError(f"{problem} ({reason})" if reason else problem)
    return found.stdout
