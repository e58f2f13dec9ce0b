"""How the verbs' tests run the command line."""

from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from smart_caption_ros import cli


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs `smart-caption` with some arguments in this process."""
    return lambda *arguments: CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
