"""How the verbs' tests run the command line."""

from collections.abc import Callable

import pytest
from typer.testing import Result

from smart_caption_ros import cli
from tests.cli_runner import cli_runner


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs `smart-caption` with some arguments in this process."""
    return lambda *arguments: cli_runner().invoke(cli.app, [str(argument) for argument in arguments])
