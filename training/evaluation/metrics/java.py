"""Run the COCO toolkit's Java programs so that none of them can hang an evaluation."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from training.evaluation.metrics.metric import MetricError

HOW_TO_GET_JAVA = "install a Java runtime, e.g. `apt install default-jre-headless`, or set JAVA_HOME"

_STACK_TRACE = ("\tat ", "\t... ")
"""Beginnings of the lines of a stack trace, below the line that says what failed."""


def find_java() -> str | None:
    """Find the ``java`` command, in ``JAVA_HOME`` if that is set, else on the ``PATH``; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home and (command := shutil.which("java", path=str(Path(home) / "bin"))):
        return command
    return shutil.which("java")


def toolkit_folder(part: str) -> Path:
    """Return the folder of the jar files of a part of pycocoevalcap: ``tokenizer``, ``meteor`` or ``spice``."""
    found = find_spec("pycocoevalcap")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(next(iter(found.submodule_search_locations))) / part


def run_java(program: str, arguments: Sequence[str], folder: Path, lines: Sequence[str], limit_s: float) -> list[str]:
    """Run a Java program on lines of text.

    All input is written and all output read at once, so that neither side waits for the other.

    Args:
        program: its name in error messages.
        limit_s: seconds after which the program is killed.

    Returns:
        The lines of its standard output.

    Raises:
        MetricError: there is no Java, or the program failed or took too long.
    """
    java = find_java()
    if java is None:
        raise MetricError(f"no Java here; {HOW_TO_GET_JAVA}")
    command = [java, "-Dfile.encoding=UTF-8", *arguments]
    try:
        done = subprocess.run(
            command,
            input="".join(f"{line}\n" for line in lines).encode(),
            capture_output=True,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C.UTF-8"},  # else Java does not find folders with letters beyond ASCII
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MetricError(f"{program} was ended after {limit_s:.0f} s without an answer") from None
    except OSError as error:
        raise MetricError(f"{java} cannot be run: {error.strerror}") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        complaints = [line for line in lines if not line.startswith(_STACK_TRACE)]
        raise MetricError(f"{program} failed: {complaints[-1] if complaints else f'status {done.returncode}'}")
    return done.stdout.decode().split("\n")[:-1]
