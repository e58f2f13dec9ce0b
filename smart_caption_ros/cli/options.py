"""Groups of command-line options as dataclasses, and the options that several commands share.

typer takes one parameter per option. :func:`flatten_options` derives these parameters from a dataclass, so that a
command with many options has one parameter for all of them::

    @dataclass(frozen=True)
    class ReadOptions:
        every: EveryOption = 1

    @flatten_options
    def read(path: Annotated[Path, typer.Argument()], *, options: ReadOptions) -> None: ...
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
BundleArgument = Annotated[
    Path | None, typer.Argument(metavar="PATH", help="Folder of the bundle; the default bundle if omitted.")
]
EngineOption = Annotated[str, typer.Option(help="Engine that runs the model; `doctor` lists the engines.")]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Number of CPU threads; the engine's choice by default.")
]
PipelineOption = Annotated[
    str | None, typer.Option(help="Name or folder of a spaCy pipeline; the one in the package by default.")
]
WordVectorsOption = Annotated[Path | None, typer.Option(help="GloVe text file; the table in the package by default.")]


def flatten_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the keyword argument `options` of a command by one command-line option per field of its dataclass.

    Args:
        command: a function with a keyword argument `options` that is annotated with a dataclass, the annotations of
            whose fields are those of typer.
    """
    hints = get_type_hints(command, include_extras=True)
    group = hints["options"]
    field_hints = get_type_hints(group, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(command).parameters.values()
        if parameter.name != "options"
    ]
    fields = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
            annotation=field_hints[field.name],
        )
        for field in dataclasses.fields(group)
    ]

    @functools.wraps(command)
    def flattened(**values: Any) -> None:
        options = group(**{field.name: values.pop(field.name) for field in fields})
        command(**values, options=options)

    parameters = [*own, *fields]
    flattened.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # read by inspect.signature
    flattened.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flattened
