"""Run a soak: the caption node as a process, the camera and the disturbances; then the checks."""

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.caption_listener import NodeSettings, parameter_arguments
from benchmarks.node_soak.camera import Camera, Detector
from benchmarks.node_soak.checks import check_answers, check_counts, check_memory, memory_slope_mb_per_minute
from benchmarks.node_soak.disturbances import Disturbances
from benchmarks.node_soak.images import compressed_templates, expected_captions, raw_templates
from benchmarks.node_soak.records import Record
from benchmarks.node_soak.user import NoAnswerError, User
from benchmarks.process_use import cpu_s, resident_mb
from smart_caption_ros.caption_messages import CAPTION_STATUSES
from smart_caption_ros.captioning import Captioner
from smart_caption_ros.grounding import guide_words
from smart_caption_ros.measuring.agreement import golden_frames
from smart_caption_ros.nodes.demo.processes import NodeProcess, environment, ros_variables

_PICTURES = 4
_STEP_S, _SAMPLE_S = 0.2, 1.0
_LONGEST_REST_INTERVAL_S, _RESTS = 30.0, 12
_REST_SAMPLES = 5
_QUIET_DIAGNOSTICS, _QUIET_TIMEOUT_S = 3, 30.0
_LONGEST_EXCERPT = 1500


@dataclass(frozen=True)
class Soak:
    """Settings of a soak."""

    node: NodeSettings
    size: tuple[int, int]
    """Width and height of the images in pixels."""
    rate_hz: float
    compressed: bool
    seconds: float
    warm_up_s: float
    """Time at the beginning that the fit of the memory leaves out."""
    bad_share: float
    """Probability that an image is bad."""
    disturb_every_s: float
    """Mean time between two disturbances."""
    max_slope_mb_per_minute: float
    """Limit of the growth of the node's resident memory."""
    seed: int


def run_soak(
    soak: Soak, folder: Path, on_progress: Callable[[float], object] = lambda elapsed_s: None
) -> dict[str, Any]:
    """Run a soak.

    Args:
        folder: the logs are written into it.
        on_progress: called with the seconds since the beginning, several times per second.

    Returns:
        The figures, and ``problems``: what the checks found, one sentence each; empty if the node passed.

    Raises:
        NoAnswerError: the node published no caption after its start.
        EngineError: the engine does not work.
        BundleError: the bundle cannot be read.
    """
    # As the node does: the objects that the bundle finds guide the words.
    captioner = guide_words(Captioner.from_bundle(soak.node.bundle, soak.node.engine, soak.node.threads))
    pictures = golden_frames(_PICTURES, *soak.size)
    expected = expected_captions(captioner, pictures)
    record = Record()
    with ExitStack() as stack:
        stack.enter_context(environment(ros_variables(folder / "logs")))
        user = stack.enter_context(User.opened(record))
        arguments = parameter_arguments(soak.node.parameters)
        process = stack.enter_context(NodeProcess(soak.node.module, arguments, folder / "caption_node.log"))
        user.process = process
        detector = Detector(user.node)
        _wait_until_active(user, record)
        camera = Camera(
            user.node,
            (compressed_templates if soak.compressed else raw_templates)(pictures, soak.seed),
            record,
            detector,
            compressed=soak.compressed,
            rate_hz=soak.rate_hz,
            bad_share=soak.bad_share,
            seed=soak.seed,
        )
        started_s = time.monotonic()
        with camera:
            try:
                _disturb(soak, process, user, Disturbances(user, detector, record, soak.seed), record, on_progress)
            except NoAnswerError as error:
                record.problems.append(str(error))
            except ProcessLookupError:
                record.problems.append(f"the node ended with the status {process.stop()}:\n{process.log_tail()}")
        elapsed_s = time.monotonic() - started_s
        if process.exit_status is None:
            _wait_until_quiet(user, record)
        _end(process, record)
    slope = memory_slope_mb_per_minute(record.resting_mb, soak.warm_up_s)
    cpu_used_s = record.cpu_s[-1] - record.cpu_s[0] if record.cpu_s else 0.0
    return {
        "seconds": round(elapsed_s, 1),
        **_image_figures(record),
        "disturbances": dict(sorted(record.disturbances.items())),
        "peak_mb": record.peak_mb,
        "resting_mb": [(round(at_s, 1), round(memory, 1)) for at_s, memory in record.resting_mb],
        "resident_slope_mb_per_minute": None if slope is None else round(slope, 3),
        "resident_slope_is": f"Theil-Sen estimator of the resident memory at rest after {soak.warm_up_s:g} s",
        "cpu_seconds": round(cpu_used_s, 2),
        "cpu_percent_of_a_core": round(100 * cpu_used_s / elapsed_s, 1),
        "cpu_ms_per_answer": round(1e3 * cpu_used_s / max(1, len(record.answers)), 2),
        "problems": [
            *record.problems,
            *check_answers(record, expected),
            *check_counts(record),
            *check_memory(slope, soak.max_slope_mb_per_minute),
        ],
    }


def _wait_until_active(user: User, record: Record) -> None:
    def is_active() -> bool:
        return bool(record.counts) and record.counts[-1].state == "active"

    try:
        user.wait_for(is_active, "diagnostics of the state active")
    except ProcessLookupError as error:
        raise NoAnswerError(str(error)) from error


def _disturb(
    soak: Soak,
    process: NodeProcess,
    user: User,
    disturbances: Disturbances,
    record: Record,
    on_progress: Callable[[float], object],
) -> None:
    """Disturb the node, and sample its memory, until the time is over; at intervals let it rest.

    Raises:
        NoAnswerError: the node did not answer a call.
        ProcessLookupError: the node has ended.
    """
    gaps = random.Random(soak.seed)
    rest_every_s = min(_LONGEST_REST_INTERVAL_S, soak.seconds / _RESTS)
    started_s = time.monotonic()
    disturb_at_s, sample_at_s, rest_at_s = gaps.expovariate(1 / soak.disturb_every_s), 0.0, rest_every_s
    while (elapsed_s := time.monotonic() - started_s) < soak.seconds:
        on_progress(elapsed_s)
        if elapsed_s >= sample_at_s:
            record.peak_mb = resident_mb(process.pid)["peak"]
            record.cpu_s.append(cpu_s(process.pid))
            sample_at_s = elapsed_s + _SAMPLE_S
        if elapsed_s >= disturb_at_s:
            disturbances.next()
            disturb_at_s = time.monotonic() - started_s + gaps.expovariate(1 / soak.disturb_every_s)
        if elapsed_s >= rest_at_s:
            record.resting_mb.append((elapsed_s, _memory_at_rest(process, user, disturbances)))
            rest_at_s = elapsed_s + rest_every_s
        user.spin(_STEP_S)
    disturbances.rest()


def _memory_at_rest(process: NodeProcess, user: User, disturbances: Disturbances) -> float:
    """Measure the resident memory in 1e6 bytes without listeners and with the first value of every parameter.

    The memory for listeners and for messages in transit is not growth.
    """
    disturbances.rest()
    samples = []
    for _ in range(_REST_SAMPLES):
        user.spin(_STEP_S)
        samples.append(resident_mb(process.pid)["resident"])
    return float(np.median(samples))


def _wait_until_quiet(user: User, record: Record) -> None:
    """Wait until no image is in progress and the diagnostics have repeated themselves.

    An image in progress that is never counted ends the wait after a time limit; the check of the counts reports it.
    """

    def is_quiet() -> bool:
        last = record.counts[-_QUIET_DIAGNOSTICS:]
        return len(record.counts) >= beginning + _QUIET_DIAGNOSTICS and not last[-1].in_progress and len(set(last)) == 1

    beginning = len(record.counts)
    with suppress(NoAnswerError, ProcessLookupError):
        user.wait_for(is_quiet, "diagnostics without images in progress", _QUIET_TIMEOUT_S)


def _end(process: NodeProcess, record: Record) -> None:
    """End the node with SIGINT, and record a wrong exit status or a logged exception."""
    lived = process.exit_status is None
    status = process.stop()
    if lived and status:
        record.problems.append(f"the node ended with the status {status} after SIGINT:\n{process.log_tail()}")
    log = process.log.read_text(errors="replace")
    if "Traceback" in log:
        at = log.index("Traceback")
        record.problems.append(f"the node logged an exception:\n{log[at : at + _LONGEST_EXCERPT]}")


def _image_figures(record: Record) -> dict[str, Any]:
    last = record.counts[-1] if record.counts else None
    kinds = Counter(template.kind for template, _ in record.published)
    statuses = Counter(answer.status for answer in record.answers)
    return {
        "published": len(record.published),
        "published_by_kind": dict(sorted(kinds.items())),
        "captions_arrived": len(record.answers),
        "captions_by_status": {CAPTION_STATUSES[status].value: count for status, count in sorted(statuses.items())},
        "counts_of_the_node": asdict(last) if last else {},
    }
