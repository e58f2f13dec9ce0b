"""`smart-caption bundle build`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

from smart_caption_ros.cli.options import BundleArgument, Option
from smart_caption_ros.cli.terminal import (
    errors_in_a_sentence,
    log_to_terminal,
    make_progress_bar,
    printable,
    report_error,
)


def build(
    path: BundleArgument = None,
    detector: Annotated[
        Path | None, Option(help="ONNX detector that is used with the bundle: its engine is built as well.")
    ] = None,
) -> None:
    """Build the TensorRT engines of a bundle for this machine and keep them in the cache for later starts."""
    with errors_in_a_sentence():
        from tqdm import tqdm

        from smart_caption_ros.captioning import Bundle, EngineError
        from smart_caption_ros.captioning.bundle import DETECTOR_GRAPH, STATIC_GRAPH, VISION_GRAPH
        from smart_caption_ros.engines.tensorrt import TensorRtEngine

        log_to_terminal()
        bundle = Bundle.load(path)
        with make_progress_bar(unit="step", disable=not sys.stderr.isatty()) as bar:

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
                    report_error(
                        f"cancelled the build of the engine of {file.name}; engines that were complete are kept"
                    )
                    raise
                with tqdm.external_write_mode():
                    seconds = time.monotonic() - started
                    print(f"{file.name}: {engine.plan_path(file, content)} ({graph.mode}; {seconds:.1f} s)")
        print(printable(f"{bundle.name} is ready for {engine.description}"))
