"""Run the commands of the workstation: options by typer, errors in one sentence, exit statuses.

A command is a function with typed parameters; its docstring is the help text and its parameters are the options.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from smart_caption_ros.captioning.bundle import MANIFEST
from smart_caption_ros.files import OutputError, check_output, check_output_folder
from training.paths import data_folder

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
"""Exit statuses: failed; wrong options, as of typer, or an output that must not be written; stopped with Ctrl-C."""

ThreadsOption = Annotated[int | None, typer.Option(min=1, help="CPU threads (default: all).")]
DeviceOption = Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda or cuda:N.")]
DataFolderOption = Annotated[
    Path,
    typer.Option(
        default_factory=data_folder,
        metavar="FOLDER",
        help="Folder of the data (default: SMART_CAPTION_DATA, else ../shared/data).",
        show_default=False,
    ),
]
JsonOption = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the results as JSON.")]


def run_command(
    command: Callable[..., int | None],
    program: str,
    errors: tuple[type[Exception], ...] = (),
    stopped: str = "stopped",
) -> int:
    """Parse ``sys.argv`` and call a command.

    An option whose type is a list takes several values, ``--bundle A B``, or is repeated.

    Args:
        command: function that returns an exit status, or None for 0. An OSError without a file name is reported with
            the command's parameter ``output``, if it has one.
        errors: exceptions whose message is a sentence for the user.

    Returns:
        The exit status: that of the command, :data:`FAILED`, :data:`INTERRUPTED`, or 2 after wrong options.
    """

    @functools.wraps(command)
    def call(**options: object) -> None:
        output = options.get("output")
        with errors_in_a_sentence(errors, output if isinstance(output, Path) else None, stopped):
            _check_outputs(options)
            raise typer.Exit(command(**options) or 0)

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(help=inspect.getdoc(command))(call)
    lists = {
        name
        for parameter in typer.main.get_command(app).params
        if getattr(parameter, "multiple", False)
        for name in parameter.opts
    }
    try:
        app(args=repeat_list_options(sys.argv[1:], lists), prog_name=program)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@contextmanager
def errors_in_a_sentence(
    errors: tuple[type[Exception], ...], output: Path | None = None, stopped: str = "stopped"
) -> Iterator[None]:
    """Report an error in one sentence on stderr and end the command.

    Args:
        errors: exceptions whose message is a sentence for the user; all others keep their traceback.
        output: file that the command writes; reported with an OSError without a file name.

    Raises:
        typer.Exit: after one of ``errors`` or an OSError with :data:`FAILED`, after Ctrl-C with :data:`INTERRUPTED`.
    """
    try:
        yield
    except OutputError as error:
        report_error(error)
        raise typer.Exit(WRONG_USAGE) from error
    except errors as error:
        report_error(error)
        raise typer.Exit(FAILED) from error
    except OSError as error:
        file = error.filename or output
        report_error(f"{file}: {error.strerror}" if file else error)
        raise typer.Exit(FAILED) from error
    except KeyboardInterrupt:
        print(stopped, file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def _check_outputs(options: Mapping[str, object]) -> None:
    """Check that no output of a command is one of its inputs, before any work.

    Outputs are the options `output` and `json_path`, and of a command that replaces bundles the folder `bundle` and the
    file `checkpoint`; every other path is an input, and so are the files of a bundle, if its folder is one.
    """
    replaces = "replace" in options
    names = ("output", "bundle", "checkpoint") if replaces else ("output", "json_path")
    outputs = {name: value for name in names if isinstance(value := options.get(name), Path)}
    texts = ("source", "checkpoint", "dataset")
    inputs = [Path(value) for name in texts if isinstance(value := options.get(name), str)]
    for name, value in options.items():
        if name not in outputs:
            inputs += [path for path in (value if isinstance(value, list) else [value]) if isinstance(path, Path)]
    of_bundles = [file for path in inputs if (path / MANIFEST).exists() for file in path.iterdir()]
    inputs += [file for file in of_bundles if file.suffix != ".json" or file.name in (MANIFEST, "parameters.json")]
    for name, output in outputs.items():
        if replaces and name != "checkpoint":
            check_output_folder(output, inputs)
        elif name == "json_path" or not output.is_dir():
            check_output(output, inputs)


def refuse_options(context: typer.Context, options: Sequence[str], others: str) -> None:
    """Refuse options of the command line that have no effect here."""
    for option in options:
        if (source := context.get_parameter_source(option)) and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"is for {others}", param_hint=f"--{option.replace('_', '-')}")


def report_error(error: object) -> None:
    """Print ``error: ...`` on stderr."""
    print(f"error: {error}", file=sys.stderr, flush=True)


def repeat_list_options(arguments: Sequence[str], options: set[str]) -> list[str]:
    """Rewrite ``--bundle A B`` as ``--bundle A --bundle B``, the only form that typer reads.
    ``options``: names of the options that take a list; all arguments up to the next option belong to them.
    """
    written: list[str] = []
    option, values = "", 0
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*written, *arguments[place:]]
        if argument.startswith("-"):
            option, values = (argument if argument in options else ""), 0
        elif option:
            if values:
                written.append(option)
            values += 1
        written.append(argument)
    return written
