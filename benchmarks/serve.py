"""Measure whether browsers that look at the page slow the captioner down.

    python -m benchmarks.serve [--bundle FOLDER] [--rate 5] [--browsers 20] [--stalled 3] [--json FILE]

Frames are captioned in the process that serves the page, which costs the captioner more than a node in another process,
alternately without browsers and with some, of which a few stop reading. The browsers are in another process; each reads
the stream and requests the frame of every caption. Unlike on a robot, they share the processor with the captioner.
"""

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.environment import describe_environment, report
from benchmarks.page_browsers import Crowd, Load
from benchmarks.timing import medians_of
from smart_caption_ros.bags.message_captioner import load_coverage
from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.grounding import NounCoverage
from smart_caption_ros.live import SourceFeed
from smart_caption_ros.record import CaptionRecord
from smart_caption_ros.serving import Access, Hub, PageServer, ServingError
from smart_caption_ros.sources import SourceError, open_source
from training.command_line import JsonOption, run_command

WARM_UP_S = 3.0


def serve(
    bundle: Annotated[Path | None, typer.Option(help="Folder of the bundle (default: the bundle that ships).")] = None,
    engine: Annotated[str, typer.Option(help="Engine that runs the bundle.")] = "onnxruntime-cpu",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads of the engine.")] = 1,
    source: Annotated[str, typer.Option(help="Frames to caption.")] = "sample:household",
    cameras: Annotated[int, typer.Option(min=1, max=9, help="Cameras, each of which gets the source.")] = 1,
    rate: Annotated[float, typer.Option(min=0.1, max=100.0, help="Frames per second of a camera.")] = 5.0,
    browsers: Annotated[int, typer.Option(min=1, help="Number of browsers.")] = 20,
    stalled: Annotated[int, typer.Option(min=0, help="How many of them stop reading.")] = 3,
    seconds: Annotated[float, typer.Option(min=1.0, help="Duration of each measurement in seconds.")] = 15.0,
    rounds: Annotated[int, typer.Option(min=1, help="Measurements with and without browsers.")] = 3,
    json_file: JsonOption = None,
) -> None:
    """Measure whether browsers that look at the page slow the captioner down."""
    captioner = Captioner.from_bundle(bundle, engine, threads)
    coverage = None if captioner.detector is None else load_coverage(captioner)
    loads = {"no browser": Load(0, 0), f"{browsers} browsers": Load(browsers, min(stalled, browsers))}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in loads}
    for number in range(rounds):
        for name, load in loads.items():
            print(f"measuring: {name}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            runs[name].append(measure_load(captioner, coverage, source, rate, load, seconds, cameras))
    result = {
        **describe_environment(seed=0),
        "model": captioner.model,
        "engine": captioner.engine,
        "threads": threads,
        "source": source,
        "cameras": cameras,
        "rate_hz": rate,
        "seconds": seconds,
        "stalled": loads[f"{browsers} browsers"].stalled,
        "runs": runs,
        "medians": {name: medians_of(found) for name, found in runs.items()},
    }
    report(result, json_file)


def main() -> int:
    return run_command(serve, "python -m benchmarks.serve", (BundleError, EngineError, ServingError, SourceError))


def measure_load(
    captioner: Captioner,
    coverage: NounCoverage | None,
    source: str,
    rate_hz: float,
    load: Load,
    seconds: float,
    cameras: int = 1,
) -> dict[str, Any]:
    """Caption a source while browsers look.

    Args:
        coverage: matches nouns with objects; None leaves that out.
        source: frames without stamps, which repeat.
        rate_hz: frames per second of a camera at most; each frame waits until the one before it was captioned.
        cameras: their number; all have this source.

    Returns:
        Captions a second; age of the captions when they are complete, milliseconds; CPU time of this process and number
        of encoded frames per caption; for the browsers that read, the frames that each received a second, the age of
        the frames at their arrival, and the megabytes that all received a second.
    """
    hub = Hub()
    with ExitStack() as stack:
        server = stack.enter_context(PageServer(hub, Access()))
        crowd = stack.enter_context(closing(Crowd(server.port, load)))
        feed = stack.enter_context(
            SourceFeed(
                {f"camera {number}": open_source(source) for number in range(cameras)},
                captioner,
                coverage,
                interval_s=1 / rate_hz,
                loop=True,
            )
        )
        _pass_on(feed, hub, WARM_UP_S)
        crowd.forget()
        started_s, cpu_before_s, encoded_before = time.monotonic(), time.process_time(), hub.pictures_encoded
        ages_ms = _pass_on(feed, hub, seconds)
        elapsed_s, cpu_used_s = time.monotonic() - started_s, time.process_time() - cpu_before_s
        encoded = hub.pictures_encoded - encoded_before
        seen = crowd.seen()
    captions = max(1, len(ages_ms))
    found: dict[str, Any] = {
        "captions_per_second": round(len(ages_ms) / elapsed_s, 3),
        "caption_age_ms": _spread(ages_ms),
        "cpu_ms_per_caption": round(1e3 * cpu_used_s / captions, 2),
        "frames_encoded_per_caption": round(encoded / captions, 3),
    }
    if load.browsers:
        per_browser = len(seen["ages_ms"]) / max(1, load.browsers - load.stalled)
        found |= {
            "frames_per_second_and_browser": round(per_browser / elapsed_s, 3),
            "frame_age_in_browser_ms": _spread(seen["ages_ms"]),
            "megabytes_per_second": round(seen["bytes"] / 1e6 / elapsed_s, 3),
        }
    return found


def _pass_on(feed: SourceFeed, hub: Hub, seconds: float) -> list[float]:
    """Give the captions of a feed to the browsers for some time; return their ages, milliseconds."""
    ages_ms = []
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        item = feed.next(min(left_s, 0.1))
        if isinstance(item, CaptionRecord) and item.age_s is not None:
            ages_ms.append(1e3 * item.age_s)
            # The name carries the time at which the frame was read, on the clock that all processes share.
            hub.publish(replace(item, name=repr(item.received_monotonic_s - item.age_s)))
    return ages_ms


def _spread(values_ms: Sequence[float]) -> dict[str, float]:
    if not values_ms:
        return {"p50": 0.0, "p95": 0.0}
    p50, p95 = np.percentile(values_ms, (50, 95))
    return {"p50": round(float(p50), 2), "p95": round(float(p95), 2)}


if __name__ == "__main__":
    sys.exit(main())
