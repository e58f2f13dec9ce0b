"""A dataclass of options becomes command-line options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from smart_caption_ros.cli.options import Argument, Option, add_command, make_app
from tests.cli_runner import cli_runner


@dataclass(frozen=True)
class Common:
    """Options that two commands share."""

    every: Annotated[int, Option(min=1, help="Every Nth frame.")] = 1
    files: Annotated[list[Path] | None, Option("--file", help="Some files.")] = None


@dataclass(frozen=True)
class Special(Common):
    """Options of one command; another default, and one more option."""

    every: Annotated[int, Option(min=1, help="Every Nth photograph.")] = 3
    fresh: Annotated[bool, Option("--fresh", help="Again.")] = False


def app_of(seen: list[tuple[str, Special]]) -> typer.Typer:
    app = make_app(pretty_exceptions_enable=False)

    def command(path: Annotated[str, Argument()], *, options: Special) -> None:
        """Do something."""
        seen.append((path, options))

    add_command(app, command)
    return app


def test_each_field_is_an_option_with_its_default_and_its_checks() -> None:
    seen: list[tuple[str, Special]] = []
    app = app_of(seen)
    assert cli_runner().invoke(app, ["a"]).exit_code == 0
    assert cli_runner().invoke(app, ["b", "--every", "2", "--file", "x", "--file", "y", "--fresh"]).exit_code == 0
    assert seen == [("a", Special(files=seen[0][1].files)), ("b", Special(2, [Path("x"), Path("y")], True))]
    assert cli_runner().invoke(app, ["a", "--every", "0"]).exit_code == 2
    assert cli_runner().invoke(app, ["a", "--nonsense"]).exit_code == 2


def test_the_help_text_is_that_of_the_command_and_of_the_most_derived_field() -> None:
    text = " ".join(cli_runner().invoke(app_of([]), ["--help"]).output.split())
    assert "Do something." in text
    assert "Every Nth photograph." in text
    assert "Every Nth frame." not in text
