"""Time searches in a large caption log.

    python -m benchmarks.caption_log [--rows N] [--log FILE] [--json FILE]

The log is generated: words of the default bundle's vocabulary with Zipf's frequencies, four cameras of two robots that
drive from room to room, and a caption every three seconds on average; a million rows are five weeks. Each word after
the fiftieth is never seen in a quarter of the rooms, so that some searches find nothing near a place. The rows have no
pictures, because a search does not read their table.

With --log the file is kept, and reused if it exists.
"""

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.environment import describe_environment, report
from smart_caption_ros.caption_log import CaptionLog, CaptionLogError, LogReader, Near, Query
from smart_caption_ros.captioning import Caption, DetectedObject, Timing, Word
from smart_caption_ros.captioning.bundle import default_bundle_path
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.record import CaptionRecord, Pose
from training.command_line import JsonOption, run_command

CAMERAS = (("robot1", "front"), ("robot1", "rear"), ("robot2", "front"), ("robot2", "arm"))
CAMERA_SHARES = (0.45, 0.25, 0.295, 0.005)
ROOMS_X, ROOMS_Y, ROOM_M = 8, 5, 6.0
PERIOD_MS = 3000
BOX = (1.0, 2.0, 30.0, 40.0)
CHUNK = 20_000
EVERYWHERE = 50
"""Words before this rank are seen in all rooms."""
START_MS = 1_750_000_000_000


def generate(rows: int, words: list[str], seed: int) -> Iterator[list[CaptionRecord]]:
    """Yield rows in chunks, in the order of time."""
    random = np.random.default_rng(seed)
    probabilities = 1 / np.arange(1, len(words) + 1)
    probabilities /= probabilities.sum()
    time_ms, room = START_MS, 0
    for start in range(0, rows, CHUNK):
        count = min(CHUNK, rows - start)
        gaps = random.exponential(PERIOD_MS, count).astype(np.int64) + 1
        times = time_ms + np.cumsum(gaps)
        time_ms = int(times[-1])
        # A robot stays in a room for some minutes.
        rooms = np.where(random.random(count) < 0.01, random.integers(0, ROOMS_X * ROOMS_Y, count), -1)
        rooms[0] = room if rooms[0] < 0 else rooms[0]
        rooms = rooms[np.maximum.accumulate(np.where(rooms >= 0, np.arange(count), 0))]
        room = int(rooms[-1])
        ids = random.choice(len(words), p=probabilities, size=(count, 14))
        # A common word replaces a word that is never seen in the room.
        ids = np.where((ids >= EVERYWHERE) & ~is_seen_in(ids, rooms[:, None]), ids % EVERYWHERE, ids)
        lengths = random.integers(6, 15, count)
        cameras = random.choice(len(CAMERAS), p=CAMERA_SHARES, size=count)
        offsets = random.uniform(0, ROOM_M, (count, 2))
        xs = ROOM_M * (rooms % ROOMS_X) + offsets[:, 0]
        ys = ROOM_M * (rooms // ROOMS_X) + offsets[:, 1]
        chunk = []
        for row in range(count):
            said = [words[index] for index in ids[row, : lengths[row]]]
            stamp_ns = int(times[row]) * 1_000_000
            robot, camera = CAMERAS[cameras[row]]
            caption = Caption(
                text=" ".join(said),
                words=tuple(Word(word, -0.5, BOX) for word in said),
                score=-5.0,
                confidence=0.5,
                alternatives=(),
                timing=Timing(0.0, 0.0, 0.0, 0.0, len(said) + 1),
                image_size=(640, 480),
                model="default",
                engine="onnxruntime",
                objects=tuple(DetectedObject(word, 0, 0.5, BOX) for word in said[1:3]),
            )
            last = len(said) - 1
            nouns = (GroundedNoun(said[1], said[1], 1, 0, 1.0), GroundedNoun(said[-1], said[-1], last, None, 0.0))
            chunk.append(
                CaptionRecord.of(
                    caption,
                    Grounding(nouns, 0.5, 0.5, (), (), (), 0.0),
                    robot=robot,
                    camera=camera,
                    stamp_ns=stamp_ns,
                    received_s=stamp_ns / 1e9 + 0.1,
                    frame_id=f"{camera}_optical_frame",
                    pose=Pose("map", (float(xs[row]), float(ys[row]), 0.0), (0.0, 0.0, 0.0, 1.0)),
                )
            )
        yield chunk


def is_seen_in(word: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return whether words, given by number, are ever seen in rooms."""
    return (word + room) % 4 != 0


def queries(words: list[str], last_ms: int) -> dict[str, list[Query]]:
    """Return the searches to time, by their description."""
    common, medium, rare = words[8:28], words[60:80], words[1200:1220]
    month_ago_ns = (last_ms - 30 * 86_400_000) * 1_000_000

    def room_of(word: str, seen: bool) -> Near:
        number = words.index(word)
        room = next(r for r in range(ROOMS_X * ROOMS_Y) if bool(is_seen_in(np.int64(number), np.int64(r))) == seen)
        x, y = ROOM_M * (room % ROOMS_X + 0.5), ROOM_M * (room // ROOMS_X + 0.5)
        return Near(x, y, radius_m=2.0)

    return {
        "a common word": [Query(word) for word in common],
        "two common words": [Query(f"{a} {b}") for a, b in itertools.pairwise(common)],
        "two common words, best": [Query(f"{a} {b}", order="best") for a, b in itertools.pairwise(common)],
        "a medium word": [Query(word) for word in medium],
        "a rare word": [Query(word) for word in rare],
        "a word that is not there": [Query(f"zzz{number}") for number in range(20)],
        "the beginning of a common word": [Query(f"{word[:4]}*") for word in common],
        "a medium word until a month ago": [Query(word, until_ns=month_ago_ns) for word in medium],
        "a medium word, a rare camera": [Query(word, camera="arm") for word in medium],
        "a medium word near a place": [Query(word, near=room_of(word, True)) for word in medium],
        "a medium word near a place where it was never seen": [Query(w, near=room_of(w, False)) for w in medium],
        "a medium word, place, camera and time": [
            Query(word, near=room_of(word, True), camera="front", since_ns=month_ago_ns) for word in medium
        ],
        "no word, a place": [Query(near=room_of(word, True)) for word in medium],
        "no word, a rare camera": [Query(camera="arm")] * 20,
    }


def build(path: Path, rows: int, words: list[str], seed: int) -> float:
    """Write the log; return the number of rows written per second of CPU time."""
    cpu_s = 0.0
    written = 0
    with CaptionLog(path) as log:
        for chunk in generate(rows, words, seed):
            started = time.process_time()
            log.add(chunk)
            written += len(chunk)
            cpu_s += time.process_time() - started
            print(f"\r{written} rows", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return written / cpu_s


def measure(path: Path, words: list[str], rounds: int) -> dict[str, object]:
    """Time each search `rounds` times, in milliseconds of wall and CPU time; other load hardly affects the latter."""
    result: dict[str, object] = {}
    with LogReader(path) as reader:
        last_ms = reader.overview().last_ms
        assert last_ms is not None
        for name, searches in queries(words, last_ms).items():
            times, cpu_times, found = [], [], 0
            for _ in range(rounds):
                for query in searches:
                    started, cpu_started = time.perf_counter(), time.process_time()
                    found += len(reader.find(query))
                    cpu_times.append((time.process_time() - cpu_started) * 1e3)
                    times.append((time.perf_counter() - started) * 1e3)
            result[name] = {
                "p50_ms": round(statistics.median(times), 2),
                "p95_ms": round(float(np.percentile(times, 95, method="inverted_cdf")), 2),
                "cpu_p50_ms": round(statistics.median(cpu_times), 2),
                "cpu_p95_ms": round(float(np.percentile(cpu_times, 95, method="inverted_cdf")), 2),
                "cpu_max_ms": round(max(cpu_times), 2),
                "found": round(found / len(times), 1),
            }
            print(f"{name}: {result[name]}", file=sys.stderr)
    return result


def caption_log(
    rows: Annotated[int, typer.Option(min=1000, help="Number of captions in the log.")] = 1_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="Number of times that each search runs.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the captions.")] = 0,
    log: Annotated[Path | None, typer.Option(help="File of the log, which is kept; temporary if omitted.")] = None,
    output: JsonOption = None,
) -> None:
    """Time searches in a large caption log."""
    vocabulary = Vocabulary.load(default_bundle_path() / "vocabulary.txt")
    words = [word for word in vocabulary.words[len(SPECIAL) :] if word.isalpha()]
    with tempfile.TemporaryDirectory() as folder:
        path = log or Path(folder, "captions.db")
        rate = None if path.exists() else build(path, rows, words, seed)
        with LogReader(path) as reader:
            captions = reader.overview().captions
        searches = measure(path, words, rounds)
        size = path.stat().st_size
    result: dict[str, object] = {
        "rows": captions,
        "bytes_a_row": round(size / captions, 1),
        "rows_written_a_cpu_second": None if rate is None else round(rate),
        "searches": searches,
    }
    report({**describe_environment(seed), **result}, output)


def main() -> int:
    """Run the command and return its exit status."""
    return run_command(caption_log, "python -m benchmarks.caption_log", errors=(CaptionLogError,))


if __name__ == "__main__":
    sys.exit(main())
