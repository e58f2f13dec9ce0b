"""The command line in the test's own process, with any version of click."""

import inspect

from typer.testing import CliRunner


def cli_runner():
    """A runner that keeps stdout and stderr apart, as click does by itself since 8.2."""
    return CliRunner(**({"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}))
