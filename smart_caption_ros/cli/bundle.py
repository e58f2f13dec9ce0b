"""`smart-caption bundle`: inspect and verify the folder of a model, and build its TensorRT engines."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smart_caption_ros.cli.options import BundleArgument, JsonOption, Option, ThreadsOption
from smart_caption_ros.cli.terminal import (
    FAILED,
    log_to_terminal,
    print_json,
    print_table,
    printable,
    progress_bar,
    report_error,
    status,
)

if TYPE_CHECKING:
    from smart_caption_ros.measuring.agreement import EngineAgreement


def inspect(path: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Print the manifest of a bundle."""
    from smart_caption_ros.captioning.bundle import load_bundle

    bundle = load_bundle(path)
    if as_json:
        print_json(dict(bundle.manifest))
        return
    from rich.text import Text

    rows = ((Text(printable(key), style="bold"), value) for key, value in _rows(bundle.manifest))
    print_table(("", ""), [("path", str(bundle.path)), *rows])


def verify(
    path: BundleArgument = None,
    as_json: JsonOption = False,
    engines: Annotated[
        bool, Option("--engines", help="Compare the captions of all engines of this machine as well.")
    ] = False,
    frames: Annotated[
        int | None, Option(min=1, max=100_000, help="Number of frames to compare on; 8 if omitted.")
    ] = None,
    threads: ThreadsOption = None,
) -> None:
    """Check every file of a bundle against its manifest; the exit status is 1 if one differs.

    With --engines, the exit status is 1 as well if an engine gives other captions than ONNX Runtime on the CPU.
    """
    from smart_caption_ros.captioning import Bundle
    from smart_caption_ros.captioning.bundle import BundleError, load_bundle
    from smart_caption_ros.measuring.agreement import REFERENCE, compare_engines

    if not engines and (frames is not None or threads is not None):
        raise typer.BadParameter("They need --engines.", param_hint="--frames, --threads")
    try:
        bundle = Bundle.load(path) if engines else load_bundle(path)
    except BundleError as error:
        if as_json:
            print_json({"ok": False, "error": str(error)}, indent=None)
        else:
            report_error(str(error))
        raise typer.Exit(FAILED) from None
    files = list(bundle.manifest["files"])
    report = {"ok": True, "bundle": str(bundle.path), "name": bundle.name, "files": files}
    if not as_json:
        for name in files:
            print(printable(f"ok  {name}"))
        print(printable(f"{bundle.name}: all {len(files)} files are as they were exported"))
    if isinstance(bundle, Bundle) and engines:
        with status("running the reference") as show:
            compared = compare_engines(
                bundle, frames or 8, threads, lambda name: show(f"comparing {name} (TensorRT may build first)")
            )
        report |= {
            "ok": all(agreement.agrees for agreement in compared),
            "reference": REFERENCE,
            "engines": [asdict(agreement) for agreement in compared],
        }
        if not as_json:
            _print_agreements(compared)
            print(printable(f"{bundle.name}: {_conclusion(compared)}"))
    if as_json:
        print_json(report)
    if not report["ok"]:
        raise typer.Exit(FAILED)


def build(
    path: BundleArgument = None,
    detector: Annotated[
        Path | None, Option(help="ONNX detector that is used with the bundle: its engine is built as well.")
    ] = None,
) -> None:
    """Build the TensorRT engines of a bundle for this machine and keep them in the cache for later starts."""
    from tqdm import tqdm

    from smart_caption_ros.captioning import Bundle, EngineError
    from smart_caption_ros.captioning.bundle import DETECTOR_GRAPH, STATIC_GRAPH, VISION_GRAPH
    from smart_caption_ros.engines.tensorrt import TensorRtEngine

    log_to_terminal()
    bundle = Bundle.load(path)
    with progress_bar(unit="step", delay_s=0) as bar:

        def show(phase: str, done: int, steps: int) -> None:
            bar.set_description(phase, refresh=False)
            bar.total, bar.n = steps, done
            bar.refresh()

        engine = TensorRtEngine(may_build=True, on_progress=show)
        if bundle.static_graph is None:
            raise EngineError(f"{bundle.path} has no {STATIC_GRAPH}, the form that TensorRT runs; export it again")
        graphs: dict[Path, bytes | None] = {
            bundle.path / name: bundle.read_graph(name) for name in (VISION_GRAPH, STATIC_GRAPH)
        }
        if DETECTOR_GRAPH in bundle.manifest["files"]:
            graphs[bundle.path / DETECTOR_GRAPH] = None
        if detector is not None:
            if not detector.is_file():
                raise EngineError(f"{detector}: there is no such detector; give the path of an ONNX file")
            graphs[detector] = None
        for file, content in graphs.items():
            started = time.monotonic()
            try:
                graph = engine.load(file, content)
                engine.offer_to_auto(file, content)
            except KeyboardInterrupt:
                bar.close()
                report_error(f"cancelled the build of the engine of {file.name}; engines that were complete are kept")
                raise
            with tqdm.external_write_mode():
                seconds = time.monotonic() - started
                print(f"{file.name}: {engine.plan_path(file, content)} ({graph.mode}; {seconds:.1f} s)")
    print(printable(f"{bundle.name} is ready for {engine.description}"))


def _conclusion(compared: "list[EngineAgreement]") -> str:
    if not all(agreement.agrees for agreement in compared):
        return "the engines here do not agree"
    differing = sum(agreement.captions - agreement.same_captions for agreement in compared)
    if differing:
        captions = sum(agreement.captions for agreement in compared)
        return f"the engines here agree as far as a bundle in 8 bits allows: {differing} of {captions} captions differ"
    return "all engines here agree"


def _print_agreements(compared: "list[EngineAgreement]") -> None:
    from rich.text import Text

    rows = [
        (
            Text("ok", style="green") if agreement.agrees else Text("differs", style="bold red"),
            agreement.engine,
            agreement.graph,
            f"{agreement.same_captions} of {agreement.captions}",
            f"within {agreement.largest_log_probability_difference:.1e}",
            agreement.problem or agreement.runs,
        )
        for agreement in compared
    ]
    print_table(("", "engine", "captioner", "same captions", "log probabilities", "found"), rows)


def _rows(manifest: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Flatten a manifest to rows: nested keys are joined by dots, long lists are shortened."""
    for key, value in manifest.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{prefix}{key}.")
        elif isinstance(value, list) and any(isinstance(element, Mapping) for element in value):
            yield from _rows({str(number): element for number, element in enumerate(value, 1)}, f"{prefix}{key}.")
        elif isinstance(value, list):
            shown = ", ".join(str(element) for element in value[:8]) or "(none)"
            yield f"{prefix}{key}", f"{shown}, ... ({len(value)} in all)" if len(value) > 8 else shown
        else:
            yield f"{prefix}{key}", str(value) or "(none)"
