"""The bundle: a folder that contains everything a captioner needs to run.

``manifest.json`` describes the folder and lists every other file with its size and sha256. Reading a bundle checks
everything that later code relies on. docs/bundles.md describes the format.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_caption_ros.captioning.calibration import Calibration
from smart_caption_ros.captioning.errors import BundleError
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.detection.layouts import LAYOUT_NAMES
from smart_caption_ros.engines.base import GraphForm
from smart_caption_ros.engines.external_data import external_locations
from smart_caption_ros.files import sha256_of, write_text_atomically
from smart_caption_ros.imaging.preprocessing import AREA, INTERPOLATIONS, Preprocessing
from smart_caption_ros.json_text import replace_lone_surrogates

FORMAT_VERSION = 5
"""Newest format that can be read, and the one that is written; docs/bundles.md says what older ones lack."""
MANIFEST = "manifest.json"
CALIBRATED_CONFIDENCE = "calibrated_confidence"
"""Key of the manifest with a :class:`smart_caption_ros.captioning.calibration.Calibration`."""
VISION_GRAPH, CAPTIONER_GRAPH, VOCABULARY = "vision.onnx", "captioner.onnx", "vocabulary.txt"
STATIC_GRAPH = "captioner_static.onnx"
WEIGHTS = "captioner.weights"
DETECTOR_GRAPH = "detector.onnx"
CAPTIONER_GRAPHS: Mapping[GraphForm, str] = {"dynamic": CAPTIONER_GRAPH, "static": STATIC_GRAPH}
"""The captioner's file by the form of its graph."""
VISION_LAYOUT = "vision"
"""Layout of a detector inside the vision graph, beside :data:`smart_caption_ros.detection.layouts.LAYOUT_NAMES`."""
VISUAL_INPUTS = ("tokens", "token_mask", "token_boxes", "image_size")
"""Inputs that a captioner graph may have, for B frames of N visual tokens: (B, N, token width) float32; (B, N) bool,
True where a token is real; (B, N, 4) float32 xyxy, fractions of the frame; (B, 2) float32, width and height of the
frame in pixels."""
WORD_BIAS, WORD_GROUPS, EVERY_BEAM = GUIDE_INPUTS = ("word_bias", "word_groups", "every_beam")
"""Inputs of a captioner graph whose search can be guided: (B, V) float32, added to the log probabilities of words when
the search chooses; (B, V) int32, group of each word, whose bias is 0 for a beam that has said a word of the group; (B,)
bool, True where the search goes on until all beams have ended. Zeros and False have no effect."""
CAPTIONER_INPUTS = (*VISUAL_INPUTS, *GUIDE_INPUTS)
"""All inputs that a captioner graph may have."""
LOOP_INPUTS = (EVERY_BEAM,)
"""Inputs that the graph with fixed shapes lacks: its search always goes on to the longest caption."""


def default_bundle_path() -> Path:
    """Return the folder of the bundle that ships with the package."""
    return Path(__file__).resolve().parent.parent / "bundles" / "default"


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write ``manifest.json`` to a bundle folder, atomically."""
    write_text_atomically(folder / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class DetectorFacts:
    """Facts about the detector, the manifest's entry ``detector``."""

    layout: str
    """One of :data:`smart_caption_ros.detection.layouts.LAYOUT_NAMES`, or :data:`VISION_LAYOUT`."""
    minimum_score: float
    """Lowest score of an object."""


@dataclass(frozen=True)
class Eyes:
    """The vision graph of a bundle, which makes visual tokens of frames; a bundle may hold nothing else."""

    path: Path
    manifest: Mapping[str, Any]
    """The manifest as read; see docs/bundles.md for every key."""
    name: str
    preprocessing: Preprocessing
    grid: tuple[int, int]
    """Rows and columns of the visual tokens, which are in row order."""
    tokens_before_grid: int
    """Visual tokens before those of the grid, which stand for no cell."""
    token_width: int
    class_names: tuple[str, ...]
    """Classes of the detector in the order of its scores; empty without a detector."""
    detector: DetectorFacts | None
    """None for a bundle without a detector."""

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> "Eyes":
        """Read and check the vision graph of a bundle, with a captioner or without; arguments as :meth:`Bundle.load`.

        Raises:
            BundleError: the bundle is missing, malformed, changed after export or newer than this package.
        """
        read = _open(path)
        read.check_files(VISION_GRAPH)
        return Eyes(**_eyes(read))


@dataclass(frozen=True)
class Bundle(Eyes):
    """A bundle whose files agree with its manifest; :meth:`load` makes it."""

    captioner_inputs: tuple[str, ...]
    """Inputs of the captioner graph, some of :data:`CAPTIONER_INPUTS`."""
    search: Search
    """What the search of the captioner graph does."""
    vocabulary: Vocabulary
    min_detail: float
    """Frames with less :func:`smart_caption_ros.imaging.detail.detail_of` are not worth a caption; 0 for none."""
    calibration: Callable[[Mapping[str, float]], float] | None
    """Calibrated confidence by :func:`smart_caption_ros.captioning.calibration.caption_features`; None in a bundle
    without it."""

    @property
    def can_be_guided(self) -> bool:
        """Whether the search takes :data:`GUIDE_INPUTS`."""
        return WORD_BIAS in self.captioner_inputs

    @property
    def static_graph(self) -> Path | None:
        """File of the captioner graph with fixed shapes, for engines without control flow; None where it is absent."""
        return self.path / STATIC_GRAPH if STATIC_GRAPH in self.manifest["files"] else None

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> "Bundle":
        """Read and check a bundle; without a path, the one that ships with the package.

        Raises:
            BundleError: the bundle is missing, malformed, changed after export or newer than this package.
        """
        read = _open(path)
        if not read.has_captioner:
            raise BundleError(
                f"{read.folder} holds a vision graph without a captioner: it makes features, but says nothing; give a "
                "bundle that was exported with a captioner"
            )
        bundle = cls(
            **_eyes(read),
            captioner_inputs=_read_captioner_inputs(read),
            search=_read_search(read),
            vocabulary=_read_vocabulary(read),
            min_detail=_read_min_detail(read),
            calibration=_read_calibration(read),
        )
        read.check_files(VISION_GRAPH, CAPTIONER_GRAPH)
        return bundle


def load_bundle(path: str | os.PathLike[str] | None = None) -> Eyes:
    """Read a bundle, or one that holds a vision graph alone.

    Raises:
        BundleError: as :meth:`Bundle.load`.
    """
    return (Bundle if _open(path).has_captioner else Eyes).load(path)


def _open(path: str | os.PathLike[str] | None) -> "_Reader":
    """Read a manifest, and refuse those that this package cannot read."""
    folder = default_bundle_path() if path is None else Path(path)
    read = _Reader(folder, _read_manifest(folder))
    if "imported_from" in read.manifest and VISION_GRAPH not in read.file_names():
        raise BundleError(
            f"{folder} captions stored region features ({read.manifest['imported_from']}) and has no vision graph, so "
            "a robot cannot run it; score it with `python -m training.evaluate --checkpoint "
            f"{folder / 'captioner.safetensors'}`"
        )
    version = read.integer("format_version")
    if version > FORMAT_VERSION:
        raise BundleError(
            f"{folder}: bundle format {version} is newer than this package reads ({FORMAT_VERSION}); "
            "update smart_caption_ros"
        )
    return read


def _eyes(read: "_Reader") -> dict[str, Any]:
    """Read the fields of :class:`Eyes`."""
    names = read.value("class_names", list, "a list of names", lambda v: all(isinstance(n, str) for n in v))
    return {
        "path": read.folder,
        "manifest": read.manifest,
        "name": read.value("name", str, "a name", bool),
        "preprocessing": _read_preprocessing(read),
        "grid": (read.integer("tokens.rows"), read.integer("tokens.columns")),
        "tokens_before_grid": read.whole_number("tokens.before_grid", default=0),
        "token_width": read.integer("tokens.width"),
        "class_names": tuple(names),
        "detector": _read_detector(read),
    }


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        raise BundleError(f"{folder}: no such bundle; give the folder that `python -m export` wrote")
    if not folder.is_dir():
        raise BundleError(f"{folder} is a file; a bundle is the folder that holds {MANIFEST}")
    try:
        manifest = json.loads(replace_lone_surrogates((folder / MANIFEST).read_text(encoding="utf-8-sig")))
    except FileNotFoundError:
        raise BundleError(f"{folder} has no {MANIFEST}, so it is not a bundle") from None
    except OSError as error:
        raise BundleError(f"{folder / MANIFEST} cannot be read: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BundleError(f"{folder / MANIFEST} is not JSON ({error}); copy the bundle again") from None
    if not isinstance(manifest, dict):
        raise BundleError(f"{folder / MANIFEST} must hold a JSON object, not a {type(manifest).__name__}")
    return manifest


def _read_preprocessing(read: "_Reader") -> Preprocessing:
    width, height = read.integer("preprocessing.width"), read.integer("preprocessing.height")
    interpolation, shorter = AREA, None
    # Older formats describe AREA in words, or not at all.
    if not str(read.manifest["preprocessing"].get("interpolation", AREA)).startswith(AREA):
        wanted = f"one of {', '.join(INTERPOLATIONS)}"
        interpolation = read.value("preprocessing.interpolation", str, wanted, lambda name: name in INTERPOLATIONS)
    if "shorter_side" in read.manifest["preprocessing"]:
        longest = max(width, height)
        shorter = read.value("preprocessing.shorter_side", int, f"at least {longest}", lambda side: side >= longest)
    return Preprocessing(width, height, interpolation, shorter)


def _read_vocabulary(read: "_Reader") -> Vocabulary:
    path, joining = read.checked_file(VOCABULARY), {}
    if "vocabulary" in read.manifest:  # the key is newer than the first bundles, and its parts differ in age
        found = read.value("vocabulary", dict, "an object", bool)
        for key, kind in (("continuation", str), ("attachment", str), ("clean_up", bool)):
            if key in found:
                joining[key] = read.value(f"vocabulary.{key}", kind, f"a {kind.__name__}", lambda value: True)
    try:
        return Vocabulary.load(path, **joining)
    except (ValueError, UnicodeDecodeError) as error:
        raise BundleError(f"{path} is malformed: {error}") from None


def _read_captioner_inputs(read: "_Reader") -> tuple[str, ...]:
    if "captioner_inputs" not in read.manifest:  # the key is newer than the first bundles
        return VISUAL_INPUTS[:2]
    names = read.value(
        "captioner_inputs", list, f"a list with tokens and any others of {', '.join(CAPTIONER_INPUTS[1:])}",
        lambda names: "tokens" in names
        and all(names.count(name) == 1 and name in CAPTIONER_INPUTS for name in names)
        and len({*names} & {*GUIDE_INPUTS}) in (0, len(GUIDE_INPUTS)),
    )  # fmt: skip
    return tuple(names)


def _read_search(read: "_Reader") -> Search:
    for key in ("decoding.beam_size", "decoding.max_words"):  # the others are newer than the first bundles
        read.integer(key)
    try:
        return Search.from_json(read.manifest["decoding"])
    except ValueError as error:
        raise BundleError(f"{read.folder / MANIFEST}: decoding: {error}; export the bundle again") from None


def _read_min_detail(read: "_Reader") -> float:
    if "min_detail" not in read.manifest:  # the key is newer than the first bundles
        return 0.0
    return float(read.value("min_detail", (int, float), "a number from 0 to 255", lambda number: 0 <= number <= 255))


def _read_calibration(read: "_Reader") -> Calibration | None:
    if CALIBRATED_CONFIDENCE not in read.manifest:
        return None
    try:
        return Calibration.from_json(read.manifest[CALIBRATED_CONFIDENCE])
    except ValueError as error:
        raise BundleError(
            f"{read.folder / MANIFEST}: {CALIBRATED_CONFIDENCE} {error}; fit it again, or remove the key"
        ) from None


def _read_detector(read: "_Reader") -> DetectorFacts | None:
    if DETECTOR_GRAPH not in read.file_names() and "detector" not in read.manifest:
        return None
    known = (*LAYOUT_NAMES, VISION_LAYOUT)
    layout = read.value("detector.layout", str, f"one of {', '.join(known)}", lambda name: name in known)
    if layout != VISION_LAYOUT and DETECTOR_GRAPH not in read.file_names():
        raise BundleError(f"{read.folder / MANIFEST} describes a detector, but does not list {DETECTOR_GRAPH}")
    if layout == VISION_LAYOUT and DETECTOR_GRAPH in read.file_names():
        raise BundleError(f"{read.folder / MANIFEST} lists {DETECTOR_GRAPH} beside a {VISION_GRAPH} that finds objects")
    read.value("class_names", list, "the names of the detector's classes", bool)
    score = read.value("detector.minimum_score", (int, float), "a number from 0 to 1", lambda number: 0 <= number <= 1)
    return DetectorFacts(layout, float(score))


@dataclass(frozen=True)
class _Reader:
    """Typed access to the manifest, with the key in every error."""

    folder: Path
    manifest: dict[str, Any]

    def value(self, key: str, kind: type | tuple[type, ...], wanted: str, valid: Callable[[Any], bool]) -> Any:
        value: Any = self.manifest
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                raise BundleError(f"{self.folder / MANIFEST} lacks {key}; export the bundle again")
            value = value[part]
        # In Python True is an int; in a manifest it is not a number.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool) or not valid(value):
            raise BundleError(f"{self.folder / MANIFEST}: {key} must be {wanted}, not {value!r}")
        return value

    def integer(self, key: str) -> int:
        return int(self.value(key, int, "a positive whole number", lambda number: number > 0))

    def whole_number(self, key: str, default: int) -> int:
        *parents, last = key.split(".")
        if last not in self.value(".".join(parents), dict, "an object", bool):
            return default  # older formats lack the key
        return int(self.value(key, int, "a whole number, 0 or more", lambda number: number >= 0))

    @property
    def has_captioner(self) -> bool:
        return "decoding" in self.manifest or CAPTIONER_GRAPH in self.file_names()

    def file_names(self) -> list[str]:
        return list(self.value("files", dict, "an object of files", bool))

    def check_files(self, *needed: str) -> None:
        """Check all files, and that those that are needed are among them."""
        for name in dict.fromkeys((*needed, *self.file_names())):
            self.checked_file(name)
        for name in self.file_names():
            if name.endswith(".onnx"):
                self.check_graph(name)

    def check_graph(self, name: str) -> None:
        """Refuse a graph whose weights are in a file that the manifest does not list."""
        try:
            locations = external_locations(self.folder / name)
        except ValueError as error:
            raise BundleError(f"{error}; export the bundle again") from None
        for location in sorted(locations - set(self.file_names())):
            raise BundleError(
                f"{self.folder / name} takes weights from {location!r}, which is no file of the bundle; "
                "do not use a bundle like that"
            )

    def checked_file(self, name: str) -> Path:
        """Check that a file is listed and has the listed size and sha256, and return its path."""
        if name not in self.file_names():
            raise BundleError(f"{self.folder / MANIFEST} does not list {name}; export the bundle again")
        facts = self.manifest["files"][name]
        if name != Path(name).name or name in ("", ".", "..", MANIFEST):
            raise BundleError(f"{self.folder / MANIFEST} lists {name!r}, which is no plain file name in the bundle")
        if not isinstance(facts, dict) or not {"bytes", "sha256"} <= facts.keys():
            raise BundleError(f"{self.folder / MANIFEST} lacks the size or sha256 of {name}; export the bundle again")
        path = self.folder / name
        if not path.is_file():
            raise BundleError(f"{path} is missing; copy the whole bundle folder again")
        size = path.stat().st_size
        if size != facts["bytes"]:
            raise BundleError(f"{path} has {size} bytes instead of {facts['bytes']}; copy the bundle again")
        if sha256_of(path) != facts["sha256"]:
            raise BundleError(f"{path} was changed after export (its sha256 differs); copy the bundle again")
        return path
