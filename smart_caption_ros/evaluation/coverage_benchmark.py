"""Captions of a data set whose objects are known, scored: what `smart-caption coverage acvr` and `coco` run.

Frames are read, captioned, scored and forgotten one at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from smart_caption_ros import __version__
from smart_caption_ros.captioning import Captioner
from smart_caption_ros.captioning.bundle import MANIFEST
from smart_caption_ros.evaluation.caption_cache import KeptCaptions
from smart_caption_ros.evaluation.report import AREA_THRESHOLDS, CoverageReport, CoverageTally
from smart_caption_ros.files import sha256_of
from smart_caption_ros.grounding import CoverageError, CoverageResult, NounCoverage
from smart_caption_ros.imaging import ImageError
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.ground_truth import (
    GroundTruth,
    GroundTruthFrame,
    GroundTruthObject,
    Oddities,
    Oddity,
    plain_number,
)

GALLERY_FRAMES = 6


class Captions(Protocol):
    """Where the captions of a column of the table come from."""

    label: str
    """Heads the column."""
    source: str
    """Where they come from: a folder or file."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What they are, for the JSON report."""

    def caption(self, frame: GroundTruthFrame) -> str | None:
        """The caption of a frame; None where there is none.

        Raises:
            ImageError: the frame's image cannot be read.
        """

    @property
    def reused(self) -> int:
        """How many of them were there already, from an earlier run."""

    @property
    def unused(self) -> Sequence[str]:
        """Names of the frames that have a caption and were not asked for."""


class GivenCaptions:
    """Captions of a file: an object ``{"<sequence>/<frame>": "text"}``, or COCO's list of results.

    Numbers may be padded or not. A name without a sequence stands for that frame of any.

    Raises:
        CoverageError: the file cannot be read or holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.label = path.name
        self.source = str(path)
        self.reused = 0
        texts = _read_captions(path)
        self._texts = {self._key(name): text for name, text in texts.items()}
        self._unused = {self._key(name): name for name in texts}

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"file": self.source, "given": len(self._texts)}

    def caption(self, frame: GroundTruthFrame) -> str | None:
        key = self._key(frame.name)
        if key not in self._texts:
            key = ("", key[1])
        self._unused.pop(key, None)
        return self._texts.get(key)

    @property
    def unused(self) -> Sequence[str]:
        return list(self._unused.values())

    @staticmethod
    def _key(name: str) -> tuple[str, str]:
        sequence, _, frame = name.rpartition("/")
        return plain_number(sequence), plain_number(frame)


class ModelCaptions:
    """Captions by a bundle; those that were kept are not made again.

    A caption belongs to the manifest's sha256, which stands for every file of the bundle, to the engine and the
    package's version, and to the image's path, size and time of change.
    """

    def __init__(self, captioner: Captioner, kept: KeptCaptions, *, fresh: bool = False) -> None:
        self.label = captioner.model
        self.source = str(captioner.bundle.path)
        self.reused = 0
        self.unused: Sequence[str] = ()
        self._captioner = captioner
        self._kept = kept
        self._fresh = fresh
        self._digest = sha256_of(captioner.bundle.path / MANIFEST)
        self._model = f"{self._digest} {captioner.engine} smart_caption_ros {__version__}"

    @property
    def facts(self) -> Mapping[str, Any]:
        return {
            "model": self._captioner.model,
            "bundle": self.source,
            "manifest_sha256": self._digest,
            "engine": self._captioner.engine,
        }

    def caption(self, frame: GroundTruthFrame) -> str | None:
        stat = frame.image_path.stat()
        image = f"{frame.image_path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
        text = None if self._fresh else self._kept.get(self._model, image)
        if text is not None:
            self.reused += 1
            return text
        text = self._captioner.caption(frame.read_image()).text
        self._kept.keep(self._model, image, text)
        return text


@dataclass(frozen=True)
class ScoredFrame:
    """A frame of the gallery."""

    frame: GroundTruthFrame
    objects: tuple[GroundTruthObject, ...]
    """Those above the smallest threshold: what the score is about."""
    caption: str
    result: CoverageResult


@dataclass(frozen=True)
class Outcome:
    """A column of the table."""

    label: str
    source: str
    captions: Mapping[str, Any]
    report: CoverageReport
    oddities: Oddities
    best: tuple[ScoredFrame, ...]
    worst: tuple[ScoredFrame, ...]


def run(
    ground_truth: GroundTruth,
    captions: Captions,
    coverage: NounCoverage,
    every: int = 1,
    progress: Callable[[], object] = lambda: None,
) -> Outcome:
    """Score the captions of every ``every``-th frame of each sequence.

    Args:
        progress: called after each frame.

    Raises:
        SourceError: no frame could be scored; says why.
        EngineError, CoverageError, KeptCaptionsError: as their names say.
    """
    tally = CoverageTally(coverage)
    best, worst = _Gallery(1), _Gallery(-1)
    scored = 0
    for frame in ground_truth.frames(every):
        try:
            caption = captions.caption(frame)
        except ImageError:
            ground_truth.oddities.add(Oddity.UNREADABLE_IMAGE, frame.name)
            continue
        finally:
            progress()
        if caption is None:
            ground_truth.oddities.add(Oddity.FRAME_WITHOUT_CAPTION, frame.name)
            continue
        scored += 1
        result = tally.add(frame.sequence, caption, frame.objects).above.get(AREA_THRESHOLDS[0])
        if result is not None:
            large = tuple(each for each in frame.objects if each.area_share > AREA_THRESHOLDS[0])
            for gallery in (best, worst):
                gallery.offer(ScoredFrame(frame, large, caption, result))
    oddities = ground_truth.oddities
    # Of every Nth frame, those between have captions with good reason.
    for name in captions.unused if every == 1 else ():
        oddities.add(Oddity.CAPTION_WITHOUT_FRAME, name)
    if not scored:
        found = "; ".join(oddities.sentences())
        raise SourceError(f"{ground_truth.spec}: no frame could be scored" + (f": {found}" if found else ""))
    return Outcome(captions.label, captions.source, captions.facts, tally.report(), oddities, *_split(best, worst))


class _Gallery:
    """The few frames that rank highest, each with another caption than the rest: a video would show one view."""

    def __init__(self, sign: int) -> None:
        self._sign = sign
        self.frames: dict[str, ScoredFrame] = {}
        """By caption."""

    def offer(self, scored: ScoredFrame) -> None:
        rival = self.frames.get(scored.caption)
        if rival is not None and self._rank(rival) >= self._rank(scored):
            return
        self.frames[scored.caption] = scored
        if len(self.frames) > GALLERY_FRAMES:
            del self.frames[min(self.frames, key=lambda caption: self._rank(self.frames[caption]))]

    def _rank(self, scored: ScoredFrame) -> tuple[float, int]:
        # Of equals, the frame with more to name says more.
        return self._sign * (scored.result.coverage or 0.0), len(scored.result.classes)


def _split(best: _Gallery, worst: _Gallery) -> tuple[tuple[ScoredFrame, ...], tuple[ScoredFrame, ...]]:
    """The best and the worst, best and worst first; where there are few frames, none is both."""
    frames = {scored.frame.name: scored for gallery in (best, worst) for scored in gallery.frames.values()}
    size = {name: len(scored.result.classes) for name, scored in frames.items()}

    def coverage(name: str) -> float:
        return frames[name].result.coverage or 0.0

    ordered = sorted(frames, key=lambda name: (-coverage(name), -size[name]))
    middle = (len(ordered) + 1) // 2
    lowest = sorted(ordered[middle:], key=lambda name: (coverage(name), -size[name]))
    return tuple(frames[name] for name in ordered[:middle][:GALLERY_FRAMES]), tuple(
        frames[name] for name in lowest[:GALLERY_FRAMES]
    )


def to_json(outcome: Outcome) -> dict[str, Any]:
    """A column as plain values; docs/coverage.md has the layout."""
    return {
        **outcome.report.to_json(),
        "skipped": outcome.oddities.to_json(),
        "captions": dict(outcome.captions),
    }


def _read_captions(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CoverageError(f"{path}: the captions cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise CoverageError(f"{path}: the captions are not JSON: {error}") from None
    if isinstance(content, dict):
        texts = content
    elif isinstance(content, list) and all(isinstance(each, dict) for each in content):
        texts = {str(each.get("image_id")): each.get("caption") for each in content}
    else:
        texts = {}
    if not texts or not all(isinstance(text, str) for text in texts.values()):
        raise CoverageError(
            f'{path} holds no captions: expected {{"<sequence>/<frame>": "text", ...}} '
            'or [{"image_id": 1, "caption": "text"}, ...]'
        )
    return texts
