"""The command line, `smart-caption`.

What a command needs is imported when the command runs: `--help` and a mistyped option answer at once, and no
command needs more of the machine than it uses.
"""

from __future__ import annotations

import errno
import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smart_caption_ros import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from smart_caption_ros.captioning import Captioner
    from smart_caption_ros.coverage import CoverageResult
    from smart_caption_ros.describing import Answer
    from smart_caption_ros.doctor import Check

PROGRAM = "smart-caption"
FAILED, INTERRUPTED = 1, 130

app = typer.Typer(
    name=PROGRAM,
    help="Captions for a robot's camera.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
bundle_app = typer.Typer(help="Look into a bundle, the folder that is a model.", no_args_is_help=True)
app.add_typer(bundle_app, name="bundle")
coverage_app = typer.Typer(help="How much of what is there a caption names.", no_args_is_help=True)
app.add_typer(coverage_app, name="coverage")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
BundleArgument = Annotated[
    Path | None, typer.Argument(metavar="PATH", help="The bundle's folder; the one shipped by default.")
]


def main() -> None:
    """Entry point of `smart-caption`."""
    app(prog_name=PROGRAM)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


# --- describe ------------------------------------------------------------------------------------------


@app.command()
def describe(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Images, folders of images, videos, ROS 2 bags, or the index of a camera (0).",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead of text.")] = False,
    bundle: Annotated[Path | None, typer.Option(help="The bundle's folder; the one shipped by default.")] = None,
    engine: Annotated[str, typer.Option(help="What runs the model; `doctor` lists the engines.")] = "auto",
    topic: Annotated[str | None, typer.Option(help="The image topic of a bag that has several.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Caption every Nth frame of each source.")] = 1,
    output: Annotated[
        Path | None, typer.Option(help="A folder for the frames with their captions drawn, as PNG.")
    ] = None,
) -> None:
    """Say what pictures show.

    What cannot be read is reported in its place, and the rest is answered; the exit status is 1 then.
    """
    with _failures_in_a_sentence():
        from smart_caption_ros import describing
        from smart_caption_ros.captioning.engines import ENGINE_NAMES
        from smart_caption_ros.datasets import FrameSource

        if engine not in ENGINE_NAMES:
            raise typer.BadParameter(f"{engine!r} is not one of {', '.join(ENGINE_NAMES)}.", param_hint="--engine")
        _log_to_terminal()
        sources = describing.open_all(paths, topic)
        readable = any(isinstance(source, FrameSource) for source in sources)
        overlays = describing.OverlayFolder(output) if output is not None else None
        captioner = _load_captioner(bundle, engine) if readable else None
        complete = True
        answers = _with_progress(
            describing.describe(captioner, sources, every), describing.count_answers(sources, every)
        )
        for answer in answers:
            if as_json:
                print(json.dumps(describing.to_json(answer), allow_nan=False), flush=True)
            else:
                _print_answer(answer)
            if answer.frame is not None and answer.caption is not None and overlays is not None:
                overlays.write(answer.frame, answer.caption)
            complete = complete and not answer.error
        if overlays is not None and not as_json:
            print(f"{len(overlays)} picture{'s' if len(overlays) != 1 else ''} in {overlays.folder}")
        if not complete:
            raise typer.Exit(FAILED)


def _load_captioner(bundle: Path | None, engine: str) -> Captioner:
    from rich.console import Console

    from smart_caption_ros.captioning import Captioner

    with Console(stderr=True).status("loading the model"):  # says nothing where stderr is no terminal
        return Captioner.from_bundle(bundle, engine=engine)


def _print_answer(answer: Answer) -> None:
    from rich.text import Text

    caption = answer.caption
    if caption is None:
        _complain(answer.error)
        return
    console = _console()
    total_ms = 1000 * caption.timing.total_s
    facts = f"confidence {caption.confidence:.2f}, score {caption.score:.2f}, {total_ms:.0f} ms"
    console.print(Text(_printable(answer.address), style="bold"), soft_wrap=True)
    console.print(Text(f"  {caption.text or '(no caption)'}"), soft_wrap=True)
    console.print(Text(f"  {facts}", style="dim"), soft_wrap=True)


def _with_progress(answers: Iterator[Answer], total: int | None) -> Iterator[Answer]:
    """The answers, with a progress bar on stderr after a second, where that is a terminal."""
    from tqdm import tqdm

    with tqdm(total=total, unit="frame", delay=1, leave=False, disable=not sys.stderr.isatty()) as bar:
        for answer in answers:
            with tqdm.external_write_mode():  # the bar steps aside while the caller prints
                yield answer
            bar.update()


# --- demo and doctor -----------------------------------------------------------------------------------


@app.command()
def demo(
    source: Annotated[
        str | None,
        typer.Option(help="An image, folder, video, bag or camera index; scikit-image's photographs by default."),
    ] = None,
    output: Annotated[Path, typer.Option(help="The folder for what the demo leaves.")] = Path("demo_output"),
    rate: Annotated[float, typer.Option(min=0.1, max=30, help="Frames a second.")] = 2.0,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds after which the demo gives up.")] = 60.0,
    max_frames: Annotated[int, typer.Option(min=1, help="Frames after which a longer source ends.")] = 60,
) -> None:
    """Start a camera node and a caption node, and print the captions that arrive over ROS 2."""
    with _failures_in_a_sentence():
        try:
            from smart_caption_ros.nodes.demo import run_demo
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if missing in ("smart_caption_ros.msg", "smart_caption_ros.srv"):
                _complain(
                    "the demo needs the messages of this package, which were not built: ROS 2 was not there "
                    "when it was installed; install it again in the environment with ROS 2: pip install ."
                )
            elif missing.split(".")[0] in ("smart_caption_ros", "numpy", "cv2"):
                raise
            else:
                _complain(
                    f"the demo needs ROS 2, and there is no module {missing}: "
                    "source /opt/ros/jazzy/setup.bash, or run `make demo` in a checkout, "
                    "which makes an environment with ROS 2"
                )
            raise typer.Exit(FAILED) from None
        raise typer.Exit(run_demo(source, output, rate_hz=rate, timeout_s=timeout, max_frames=max_frames))


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Try out what this machine can do, and say what to do about the rest.

    The exit status is 1 where something is broken; what is merely absent does not count.
    """
    with _failures_in_a_sentence():
        from rich.console import Console

        from smart_caption_ros import doctor as doctor_module

        with Console(stderr=True).status("") as status:
            checks = doctor_module.examine(lambda name: status.update(f"trying out: {name}"))
        healthy = doctor_module.is_healthy(checks)
        if as_json:
            print(json.dumps({"healthy": healthy, "checks": [vars(check) for check in checks]}, indent=2))
        else:
            _print_checks(checks)
        if not healthy:
            raise typer.Exit(FAILED)


def _print_checks(checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    styles = {"ok": "green", "absent": "dim", "warning": "yellow", "broken": "bold red"}
    table = Table("", "", "found", box=None, pad_edge=False, show_header=False)
    for check in checks:
        found = Text(_printable(check.found))
        if check.remedy:
            found.append(f"\n-> {_printable(check.remedy)}", style="cyan")
        table.add_row(Text(check.status.value, style=styles[check.status.value]), check.name, found)
    _console().print(table)


# --- bundle --------------------------------------------------------------------------------------------


@bundle_app.command()
def inspect(path: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Print what a bundle says of itself: its manifest."""
    with _failures_in_a_sentence():
        from smart_caption_ros.captioning import Bundle

        bundle = Bundle.load(path)
        if as_json:
            print(json.dumps(dict(bundle.manifest), indent=2))
            return
        from rich.table import Table
        from rich.text import Text

        table = Table("", "", box=None, pad_edge=False, show_header=False)
        table.add_row("path", Text(_printable(str(bundle.path))))
        for key, value in _rows(bundle.manifest):
            table.add_row(Text(key, style="bold"), Text(value))
        _console().print(table)


@bundle_app.command()
def verify(path: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Check every file of a bundle against its manifest; the exit status is 1 where one does not fit."""
    with _failures_in_a_sentence():
        from smart_caption_ros.captioning import Bundle, BundleError

        try:
            bundle = Bundle.load(path)
        except BundleError as error:
            if as_json:
                print(json.dumps({"ok": False, "error": str(error)}))
            else:
                _complain(str(error))
            raise typer.Exit(FAILED) from None
        files = list(bundle.manifest["files"])
        if as_json:
            print(json.dumps({"ok": True, "bundle": str(bundle.path), "name": bundle.name, "files": files}))
            return
        for name in files:
            print(f"ok  {name}")
        print(f"{bundle.name}: all {len(files)} files are as they were exported")


def _rows(manifest: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """A manifest as flat rows: nested keys joined by dots, long lists cut."""
    for key, value in manifest.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{prefix}{key}.")
        elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
            yield from _rows({str(number): each for number, each in enumerate(value, 1)}, f"{prefix}{key}.")
        elif isinstance(value, list):
            shown = ", ".join(str(each) for each in value[:8]) or "(none)"
            yield f"{prefix}{key}", f"{shown}, ... ({len(value)} in all)" if len(value) > 8 else shown
        else:
            yield f"{prefix}{key}", str(value)


# --- coverage ------------------------------------------------------------------------------------------


@coverage_app.command()
def score(
    caption: Annotated[str, typer.Option(help="The sentence.")],
    classes: Annotated[str, typer.Option(help="The classes of the objects that are there, with commas between.")],
    as_json: JsonOption = False,
    pipeline: Annotated[
        str | None, typer.Option(help="Name or folder of a spaCy pipeline; the one shipped by default.")
    ] = None,
    word_vectors: Annotated[Path | None, typer.Option(help="A GloVe text file; the table shipped by default.")] = None,
    synonyms: Annotated[
        Path | None, typer.Option(help="A list of synonyms as published with CHAIR; they count as the class then.")
    ] = None,
    minimum_similarity: Annotated[float, typer.Option(min=0, max=1, help="Count lower similarities as 0.")] = 0.0,
    class_counts: Annotated[
        bool, typer.Option("--class-counts", help="Count every object, also of the same class.")
    ] = False,
) -> None:
    """Score a caption against the objects that are there, and print which noun was assigned to which class."""
    with _failures_in_a_sentence():
        from smart_caption_ros.coverage import CoverageOptions, NounCoverage

        options = CoverageOptions(
            minimum_similarity=minimum_similarity, synonyms=synonyms is not None, class_counts=class_counts
        )
        coverage = NounCoverage.load(pipeline, word_vectors, synonyms=synonyms, options=options)
        names = [name.strip() for name in classes.split(",") if name.strip()]
        result = coverage.score(caption, names)
        if as_json:
            print(json.dumps(result.to_json(), indent=2))
        else:
            _print_coverage(result)


def _print_coverage(result: CoverageResult) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("class", "noun", "similarity", box=None, pad_edge=False)
    nouns = {match.class_index: match for match in result.matches}
    for index, name in zip(result.class_indices, result.classes, strict=True):
        match = nouns.get(index)
        table.add_row(
            Text(_printable(name)),
            Text(_printable(match.noun.text) if match else "-"),
            f"{match.similarity:.3f}" if match else "-",
        )
    console = _console()
    if result.classes:
        console.print(table)
    for label, value in (("coverage", result.coverage), ("noun support", result.noun_support)):
        console.print(f"{label}: {'undefined' if value is None else f'{value:.3f}'}")
    for label, words in (
        ("missed classes", result.missed_classes),
        ("unsupported nouns", result.unsupported_nouns),
        ("nouns without a word vector", result.out_of_vocabulary_nouns),
        ("classes without a word vector", result.out_of_vocabulary_classes),
    ):
        if words:
            console.print(Text(f"{label}: {_printable(', '.join(words))}"), soft_wrap=True)


# --- the terminal --------------------------------------------------------------------------------------


@contextmanager
def _failures_in_a_sentence() -> Iterator[None]:
    """Turn what can go wrong into one sentence on stderr and exit status 1; Ctrl-C into a quiet 130."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except ImportError as error:
        _complain(f"{error}; run `{PROGRAM} doctor` to see what is missing")
        raise typer.Exit(FAILED) from error
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader of our output had enough
            raise
        _complain(f"{error.strerror}: {error.filename}" if error.filename else str(error))
        raise typer.Exit(FAILED) from error
    except Exception as error:
        from smart_caption_ros.captioning import BundleError, EngineError
        from smart_caption_ros.coverage import CoverageError

        if not isinstance(error, (BundleError, EngineError, CoverageError)):
            raise
        _complain(str(error))
        raise typer.Exit(FAILED) from error


def _complain(sentence: str) -> None:
    print(f"{PROGRAM}: {_printable(sentence)}", file=sys.stderr)


def _printable(text: str) -> str:
    """Text that any terminal takes: file names may hold bytes that are no characters."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _console() -> Console:
    from rich.console import Console

    # In a pipe or a file there is no width to keep to, and a table cut at 80 columns has lost its paths.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 200)


def _log_to_terminal() -> None:
    """Warnings of the package as lines on stderr; skipped frames are answered for instead."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: %(message)s"))
    logger = logging.getLogger("smart_caption_ros")
    if not logger.handlers:
        logger.addHandler(handler)
    logging.getLogger("smart_caption_ros.datasets.source").setLevel(logging.ERROR)
