"""The options of commands: how a function declares them, and the options that several commands share.

A command is a function whose parameters are annotated with :func:`Option` or :func:`Argument`; a command with many
options has one parameter `options` for all of them, a dataclass with one field per option::

    @dataclass(frozen=True)
    class ReadOptions:
        every: Annotated[int, Option(min=1, help="Every Nth frame.")] = 1

    def read(path: Annotated[Path, Argument()], *, options: ReadOptions) -> None: ...

    add_command(app, read)

:func:`add_command` translates these to what every typer since 0.4 (Ubuntu 22.04) understands: typer knows `Annotated`
since 0.9, and `X | None` since 0.12.4.
"""

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from smart_caption_ros.cli.terminal import errors_in_a_sentence, only_json_on_stdout

if TYPE_CHECKING:
    from smart_caption_ros.fleet.workers import Workers
    from smart_caption_ros.record import Trust


def Option(*names: str, **settings: Any) -> Callable[[Any], Any]:  # noqa: N802 # reads like typer's
    """Describe a command-line option: its names and the keyword arguments of :func:`typer.Option`.

    Returns a function that converts the default value of a parameter, `...` if it is required, to typer's.
    """
    return lambda default: typer.Option(default, *names, **settings)


def Argument(**settings: Any) -> Callable[[Any], Any]:  # noqa: N802
    """Describe a positional argument, with the keyword arguments of :func:`typer.Argument`."""
    return lambda default: typer.Argument(default, **settings)


def _known_engine(name: str) -> str:
    from smart_caption_ros.engines import ENGINE_NAMES

    return _one_of(ENGINE_NAMES, name, "--engine")


def _known_guide(mode: str) -> str:
    from smart_caption_ros.grounding.objects_guide import GUIDE_CHOICES

    return _one_of(GUIDE_CHOICES, mode, "--objects-guide")


def _one_of(choices: Sequence[str], value: str, option: str) -> str:
    if value not in choices:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(choices)}.", param_hint=option)
    return value


JsonOption = Annotated[bool, Option("--json", help="Print JSON.")]
LogOption = Annotated[
    Path | None,
    Option("--log", metavar="FILE", help="The log; ~/.local/share/smart_caption_ros/captions.db if omitted."),
]
BundleArgument = Annotated[
    Path | None, Argument(metavar="PATH", help="Folder of the bundle; the default bundle if omitted.")
]
EngineOption = Annotated[
    str, Option(callback=_known_engine, help="Engine that runs the model; `doctor` lists the engines.")
]
GuideOption = Annotated[
    str,
    Option(
        callback=_known_guide,
        help="How detected objects guide the words: off, bias, or auto: bias where the captioner has a detector and "
        "the bundle takes a guide.",
    ),
]
GuideStrengthOption = Annotated[
    float | None,
    Option(min=0, help="Bias of the words of an object with score 1, natural logarithm; 2 if omitted."),
]
ThreadsOption = Annotated[
    int | None, Option(min=1, max=1024, help="Number of CPU threads; the engine's choice by default.")
]
PipelineOption = Annotated[
    str | None, Option(help="Name or folder of a spaCy pipeline; the one in the package by default.")
]
WordVectorsOption = Annotated[Path | None, Option(help="GloVe text file; the table in the package by default.")]


@dataclass(frozen=True)
class TrustOptions:
    """Which captions are refused."""

    min_calibrated_confidence: Annotated[
        float, Option(min=0, max=1, help="Refuse captions of which a smaller share is true: no text, low confidence.")
    ] = 0.0
    list_objects: Annotated[
        bool, Option("--list-objects", help="In place of a refused caption list the objects that were found.")
    ] = False

    @property
    def trust(self) -> "Trust":
        from smart_caption_ros.record import Trust

        return Trust(self.min_calibrated_confidence, self.list_objects)


@dataclass(frozen=True)
class WorkerOptions:
    """Where the work is done."""

    jobs: Annotated[int | None, Option(min=1, help="Number of worker processes.")] = None
    ray: Annotated[
        str | None,
        Option(help="Work on a Ray cluster: local (started on this machine), auto, HOST:PORT or ray://HOST:PORT."),
    ] = None
    retries: Annotated[int, Option(min=0, help="Further attempts at a part of the work that failed.")] = 2

    @property
    def has_workers(self) -> bool:
        return self.jobs is not None or self.ray is not None

    @property
    def threads(self) -> int:
        """CPU threads of a worker: processes share the cores, and a task of Ray has one CPU."""
        return 1 if self.ray is not None else max(1, (os.cpu_count() or 1) // (self.jobs or 1))


def start_workers(options: WorkerOptions) -> "Workers":
    """Start the workers that the options select; the caller closes them. Raises SourceError without a cluster."""
    from smart_caption_ros.fleet.ray_workers import RayWorkers
    from smart_caption_ros.fleet.workers import LocalWorkers

    return LocalWorkers(options.jobs or 1) if options.ray is None else RayWorkers(options.ray, options.jobs)


def make_app(**settings: Any) -> typer.Typer:
    """Create a typer application; settings that the installed typer does not know are left out."""
    known = inspect.signature(typer.Typer).parameters
    return typer.Typer(**{name: value for name, value in settings.items() if name in known})


def add_command(app: typer.Typer, command: Callable[..., None], **context_settings: Any) -> None:
    """Add a function to an application as the command of its name, which reports an error in one sentence."""
    app.command(context_settings=context_settings)(_as_typer_function(command))


def _as_typer_function(command: Callable[..., None]) -> Callable[..., None]:
    """Return a function with a signature that typer understands, which calls ``command``."""
    hints = get_type_hints(command, include_extras=True)
    group = hints.get("options")
    parameters = [
        _parameter(parameter.name, hints[parameter.name], parameter.default)
        for parameter in inspect.signature(command).parameters.values()
        if parameter.name != "options"
    ]
    fields = dataclasses.fields(group) if group is not None else ()
    for field in fields:
        default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        hint = get_type_hints(group, include_extras=True)[field.name]
        parameters.append(_parameter(field.name, hint, default))

    @functools.wraps(command)
    def called(**values: Any) -> None:
        prints_json = values["as_json"] if "as_json" in values else values.get("output") == Path("-")
        if group is not None:
            values["options"] = group(**{field.name: values.pop(field.name) for field in fields})
        with only_json_on_stdout() if prints_json else nullcontext(), errors_in_a_sentence():
            command(**values)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # read by inspect.signature
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    """Translate a parameter: its type without `Annotated` and `|`, and typer's description as its default value."""
    if get_origin(hint) in (Union, UnionType):  # Python 3.10 wraps Annotated in Optional where the default is None
        (hint,) = (argument for argument in get_args(hint) if argument is not type(None))
    kind_of_value, description = get_args(hint)
    if get_origin(kind_of_value) is UnionType:
        kind_of_value = Union[get_args(kind_of_value)]  # noqa: UP007 # typer before 0.12.4 does not know UnionType
    given = description(... if default is inspect.Parameter.empty else default)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=given, annotation=kind_of_value)
