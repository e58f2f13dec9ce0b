"""Score captions of a data set with known objects: `smart-caption coverage acvr`, `coco` and `folder`.

Frames are read, captioned and scored one at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smart_caption_ros import __version__
from smart_caption_ros.captioning import Captioner
from smart_caption_ros.captioning.bundle import MANIFEST
from smart_caption_ros.evaluation.caption_cache import CaptionCache
from smart_caption_ros.evaluation.report import AREA_THRESHOLDS, CoverageReport, CoverageTally
from smart_caption_ros.files import sha256_of
from smart_caption_ros.grounding import CoverageError, CoverageResult, NounCoverage
from smart_caption_ros.grounding.objects_guide import OFF
from smart_caption_ros.imaging import ImageError
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.ground_truth import (
    DatasetIssue,
    DatasetIssues,
    GroundTruth,
    GroundTruthFrame,
    GroundTruthObject,
    plain_number,
)
from smart_caption_ros.sources.json_files import read_json, whole_number

GALLERY_FRAMES = 6


class GivenCaptions:
    """Captions in a file: an object ``{"<sequence>/<frame>": "text"}``, or COCO's list of results.

    Leading zeros of numbers do not matter. A name without a sequence stands for that frame of every sequence.
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


class BundleCaptions:
    """Captions of a bundle, cached on disk.

    The key of a cached caption consists of the manifest's sha256, which covers every file of the bundle, the engine,
    the guide, the package's version, and the image's path, size and modification time.
    """

    def __init__(self, captioner: Captioner, cache: CaptionCache, *, fresh: bool = False) -> None:
        self.label = captioner.model
        self.source = str(captioner.bundle.path)
        self.reused = 0
        self.unused: Sequence[str] = ()
        self._captioner = captioner
        self._cache = cache
        self._fresh = fresh
        self._digest = sha256_of(captioner.bundle.path / MANIFEST)
        self.key = model_key(captioner)
        """Key of this model's captions in the cache, :func:`model_key`."""

    @property
    def facts(self) -> Mapping[str, Any]:
        return {
            "model": self._captioner.model,
            "bundle": self.source,
            "manifest_sha256": self._digest,
            "engine": self._captioner.engine,
            "objects_guide": _guide_of(self._captioner),
        }

    def caption(self, frame: GroundTruthFrame) -> str | None:
        image = _image_key(frame.image_path)
        text = None if self._fresh else self._cache.get(self.key, image)
        if text is not None:
            self.reused += 1
            return text
        text = self._captioner.caption(frame.read_image()).text
        self._cache.put(self.key, image, text)
        return text

    def lacks(self, image_path: Path) -> bool:
        """Return whether the image still has to be captioned."""
        return self._fresh or self._cache.get(self.key, _image_key(image_path)) is None

    def keep(self, captions: Mapping[Path, str]) -> None:
        """Keep captions that other processes made, by the path of their image."""
        for image_path, text in captions.items():
            self._cache.put(self.key, _image_key(image_path), text)

    def take_all_from_cache(self) -> None:
        """Use the cache from now on, although the run is fresh: its own captions are there."""
        self._fresh = False


Captions = GivenCaptions | BundleCaptions
"""The captions of one column of the table. `label` is its heading; `unused` are the names of frames whose captions were
never requested."""


def model_key(captioner: Captioner) -> str:
    """Return the key of a model's captions in the cache."""
    digest = sha256_of(captioner.bundle.path / MANIFEST)
    return f"{digest} {captioner.engine} guide {_guide_of(captioner)} smart_caption_ros {__version__}"


def _guide_of(captioner: Captioner) -> str:
    return captioner.guide.description if captioner.guide is not None else OFF


def _image_key(path: Path) -> str:
    stat = path.stat()
    return f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}"


@dataclass(frozen=True)
class ScoredFrame:
    """A frame of the report's gallery."""

    frame: GroundTruthFrame
    objects: tuple[GroundTruthObject, ...]
    """Objects above the smallest threshold, against which the caption was scored."""
    caption: str
    result: CoverageResult


@dataclass(frozen=True)
class Outcome:
    """The results of one column of the table."""

    label: str
    source: str
    captions: Mapping[str, Any]
    """Facts about the captions by name, for JSON and the page."""
    report: CoverageReport
    issues: DatasetIssues
    best: tuple[ScoredFrame, ...]
    worst: tuple[ScoredFrame, ...]


@dataclass(frozen=True)
class CoverageComparison:
    """Outcomes of one or more models or caption files, with distinct labels; see :func:`distinguished`."""

    outcomes: Sequence[Outcome]
    data: str
    every: int
    objects: str
    word_vectors: str
    pipeline: str

    def skipped(self) -> list[str]:
        """Return a sentence for each kind of data that was left out."""
        return [
            sentence if len(self.outcomes) == 1 else f"{outcome.label}: {sentence}"
            for outcome in self.outcomes
            for sentence in outcome.issues.sentences()
        ]

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values; docs/coverage.md describes the layout."""
        results = [
            {
                "label": outcome.label,
                **outcome.report.to_json(),
                "skipped": outcome.issues.to_json(),
                "captions": dict(outcome.captions),
            }
            for outcome in self.outcomes
        ]
        return {
            **(results[0] if len(results) == 1 else {"results": results}),
            **{name: getattr(self, name) for name in ("data", "every", "objects", "word_vectors", "pipeline")},
        }


def distinguished(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Add the folder or file to labels that several outcomes share."""
    labels = [outcome.label for outcome in outcomes]
    return [
        replace(outcome, label=f"{outcome.label} ({outcome.source})") if labels.count(outcome.label) > 1 else outcome
        for outcome in outcomes
    ]


def run(
    ground_truth: GroundTruth,
    captions: Captions,
    coverage: NounCoverage,
    every: int = 1,
    progress: Callable[[], object] = lambda: None,
) -> Outcome:
    """Score the captions of every ``every``-th frame of each sequence; raises SourceError where none can be scored."""
    tally = CoverageTally(coverage)
    best, worst = _Gallery(1), _Gallery(-1)
    scored = 0
    for frame in ground_truth.frames(every):
        try:
            caption = captions.caption(frame)
        except ImageError:
            ground_truth.issues.add(DatasetIssue.UNREADABLE_IMAGE, frame.name)
            continue
        finally:
            progress()
        if caption is None:
            ground_truth.issues.add(DatasetIssue.FRAME_WITHOUT_CAPTION, frame.name)
            continue
        scored += 1
        result = tally.add(frame.sequence, caption, frame.objects).get(AREA_THRESHOLDS[0])
        if result is not None:
            large = tuple(target for target in frame.objects if target.area_share > AREA_THRESHOLDS[0])
            for gallery in (best, worst):
                gallery.offer(ScoredFrame(frame, large, caption, result))
    issues = ground_truth.issues
    # With every > 1, captions of the frames in between are unused on purpose.
    for name in captions.unused if every == 1 else ():
        issues.add(DatasetIssue.CAPTION_WITHOUT_FRAME, name)
    if not scored:
        issues_found = "; ".join(issues.sentences())
        raise SourceError(
            f"{ground_truth.spec}: no frame could be scored" + (f": {issues_found}" if issues_found else "")
        )
    return Outcome(captions.label, captions.source, captions.facts, tally.report(), issues, *_split(best, worst))


class _Gallery:
    """The highest ranked frames with distinct captions, because neighbouring frames of a video look alike."""

    def __init__(self, sign: int) -> None:
        self._sign = sign
        self.frames: dict[str, ScoredFrame] = {}

    def offer(self, scored: ScoredFrame) -> None:
        rival = self.frames.get(scored.caption)
        if rival is not None and self._rank(rival) >= self._rank(scored):
            return
        self.frames[scored.caption] = scored
        if len(self.frames) > GALLERY_FRAMES:
            del self.frames[min(self.frames, key=lambda caption: self._rank(self.frames[caption]))]

    def _rank(self, scored: ScoredFrame) -> tuple[float, int]:
        # Among equals, prefer the frame with more classes.
        return self._sign * (scored.result.coverage or 0.0), len(scored.result.classes)


def _split(best: _Gallery, worst: _Gallery) -> tuple[tuple[ScoredFrame, ...], tuple[ScoredFrame, ...]]:
    """Split the frames into the best (best first) and the worst (worst first), without overlap."""
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


def _read_captions(path: Path) -> dict[str, str]:
    content = read_json(path)
    if isinstance(content, dict):
        texts = content
    elif isinstance(content, list) and all(isinstance(entry, dict) for entry in content):
        numbers = [(whole_number(entry.get("image_id")), entry) for entry in content]
        texts = {
            str(entry.get("image_id") if number is None else number): entry.get("caption") for number, entry in numbers
        }
    else:
        texts = {}
    if not texts or not all(isinstance(text, str) for text in texts.values()):
        raise CoverageError(
            f'{path} holds no captions: expected {{"<sequence>/<frame>": "text", ...}} '
            'or [{"image_id": 1, "caption": "text"}, ...]'
        )
    return texts
