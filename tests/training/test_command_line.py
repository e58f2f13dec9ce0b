"""Options, exit statuses and error sentences of the workstation's commands."""

import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer

from training.command_line import ThreadsOption, run_command


class ExpectedError(Exception):
    """An error for the user."""


def command(
    name: Annotated[str, typer.Argument(help="What to do.")],
    bundle: Annotated[list[Path] | None, typer.Option(help="Bundle folders.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output")] = Path("out.json"),
    threads: ThreadsOption = None,
) -> int | None:
    """Do something.

    With details.
    """
    print(name, [str(path) for path in bundle or []], threads)
    if name == "expected":
        raise ExpectedError("the file is missing")
    if name == "system":
        raise OSError(28, "No space left on device")
    if name == "absent":
        Path("/absent/file").read_bytes()
    if name == "stop":
        raise KeyboardInterrupt
    if name == "bug":
        raise RuntimeError("bug")
    return 3 if name == "three" else None


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["command", *arguments])
    return run_command(command, "python -m command", (ExpectedError,), "stopped; start it again")


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["good"], 0, ""),
        (["three"], 3, ""),
        (["expected"], 1, "error: the file is missing\n"),
        (["system"], 1, "error: out.json: No space left on device\n"),
        (["system", "-o", "x.json"], 1, "error: x.json: No space left on device\n"),
        (["absent"], 1, "error: /absent/file: No such file or directory\n"),
        (["stop"], 130, "stopped; start it again\n"),
    ],
)
def test_a_command_ends_with_its_status_and_one_sentence(monkeypatch, capsys, arguments, status, sentence):
    assert run(monkeypatch, *arguments) == status
    assert capsys.readouterr().err == sentence


@pytest.mark.parametrize("arguments", [[], ["good", "--threads", "0"], ["good", "--threads", "x"], ["good", "--what"]])
def test_wrong_options_end_with_status_2(monkeypatch, capsys, arguments):
    assert run(monkeypatch, *arguments) == 2
    assert "Usage: python -m command" in capsys.readouterr().err


def test_an_unexpected_error_keeps_its_traceback(monkeypatch):
    with pytest.raises(RuntimeError, match="bug"):
        run(monkeypatch, "bug")


@pytest.mark.parametrize("given", [["--bundle", "a", "b"], ["--bundle", "a", "--bundle", "b"]])
def test_a_list_option_takes_several_values_or_is_repeated(monkeypatch, capsys, given):
    assert run(monkeypatch, "good", *given, "--threads", "2") == 0
    assert capsys.readouterr().out == "good ['a', 'b'] 2\n"


@pytest.mark.parametrize(("given", "output"), [("results.json", "link.json"), (".", "manifest.json")])
def test_an_output_that_is_an_input_is_refused_before_any_work(monkeypatch, capsys, tmp_path, given, output):
    for name in ("results.json", "manifest.json"):
        (tmp_path / name).write_text("captions")
    (tmp_path / "link.json").symlink_to("results.json")
    assert run(monkeypatch, "good", "--bundle", str(tmp_path / given), "-o", str(tmp_path / output)) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert f"{output} is also an input" in error
    assert (tmp_path / output).read_text() == "captions"


def test_a_bundle_that_holds_an_input_is_not_replaced(monkeypatch, capsys, tmp_path):
    def export(
        checkpoint: Annotated[str, typer.Argument()], bundle: Annotated[Path, typer.Argument()], replace: bool = False
    ) -> None:
        raise AssertionError

    (tmp_path / "best.safetensors").touch()
    monkeypatch.setattr(sys, "argv", ["export", str(tmp_path / "best.safetensors"), str(tmp_path), "--replace"])
    assert run_command(export, "export", ()) == 2
    assert "holds an input" in capsys.readouterr().err
