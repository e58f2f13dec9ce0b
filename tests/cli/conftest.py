"""How the verbs' tests run the command line."""

from functools import lru_cache

import pytest

from smart_caption_ros.cli.app import app
from smart_caption_ros.grounding import NounCoverage
from tests.cli_runner import cli_runner


@pytest.fixture
def run():
    """Runs `smart-caption` with some arguments in this process."""
    return lambda *arguments: cli_runner().invoke(app, [str(argument) for argument in arguments])


load_coverage = lru_cache(NounCoverage.load)


@pytest.fixture(autouse=True)
def _load_coverage_once(monkeypatch):
    """spaCy takes a second or two to load, and many commands ask for it."""
    monkeypatch.setattr(NounCoverage, "load", load_coverage)
