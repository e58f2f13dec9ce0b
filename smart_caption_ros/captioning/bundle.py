"""The bundle: a folder that contains everything a captioner needs to run.

``manifest.json`` describes the folder and lists every other file with its size and sha256. Reading a bundle checks
everything that later code relies on. docs/bundles.md describes the format.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from smart_caption_ros.captioning.calibration import Calibration
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.detection.layouts import LAYOUT_NAMES
from smart_caption_ros.engines.base import GraphForm
from smart_caption_ros.errors import ExpectedError
from smart_caption_ros.files import sha256_of, sha256_of_bytes, write_text_atomically
from smart_caption_ros.imaging.preprocessing import Preprocessing
from smart_caption_ros.json_text import replace_lone_surrogates

FORMAT_VERSION = 6
"""The format that is written, and the only one that can be read."""
MANIFEST = "manifest.json"
CALIBRATED_CONFIDENCE = "calibrated_confidence"
"""Key of the manifest with a :class:`smart_caption_ros.captioning.calibration.Calibration`."""
VISION_GRAPH, CAPTIONER_GRAPH, VOCABULARY = "vision.onnx", "captioner.onnx", "vocabulary.txt"
STATIC_GRAPH = "captioner_static.onnx"
WEIGHTS = "captioner.weights"
"""Constants of both captioner graphs: an ONNX model without nodes. Protocol buffers merge concatenated messages, so the
bytes of a graph followed by those of this file are the whole graph."""
DETECTOR_GRAPH = "detector.onnx"
CAPTIONER_GRAPHS: Mapping[GraphForm, str] = {"dynamic": CAPTIONER_GRAPH, "static": STATIC_GRAPH}
VISION_LAYOUT = "vision"
"""Layout of a detector inside the vision graph, beside :data:`smart_caption_ros.detection.layouts.LAYOUT_NAMES`."""
VISUAL_INPUTS = ("tokens", "token_mask", "token_boxes", "image_size")
"""Inputs that a captioner graph may have, for B frames of N visual tokens: (B, N, token width) float32; (B, N) bool,
True where a token is real; (B, N, 4) float32 xyxy, fractions of the frame; (B, 2) float32, width and height of the
frame in pixels."""
WORD_BIAS, WORD_GROUPS, EVERY_BEAM = GUIDE_INPUTS = ("word_bias", "word_groups", "every_beam")
"""Inputs of a captioner graph whose search can be guided: (B, V) float32, added to the log probabilities of words when
the search chooses; (B, V) int32, group of each word, whose bias is 0 for a beam that has a word of the group already;
(B,) bool, True where the search goes on until all beams have ended. Zeros and False have no effect."""
CAPTIONER_INPUTS = (*VISUAL_INPUTS, *GUIDE_INPUTS)
LOOP_INPUTS = (EVERY_BEAM,)
"""Inputs that the graph with fixed shapes lacks: its search always goes on to the longest caption."""
_EXTERNAL_DATA = re.compile(rb"[\x00\x08]location")
"""The key ``location`` of a constant that is stored in another file, after its length, 8. A protocol buffer may also
write the length in several bytes, the last of which is 0."""


class BundleError(ExpectedError):
    """A bundle is missing, malformed, truncated, changed or of another format."""


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


@dataclass(frozen=True)
class VisionBundle:
    """The vision graph of a bundle, which computes visual tokens of frames; the bundle may lack a captioner."""

    path: Path
    manifest: Mapping[str, Any]
    """The manifest as read; see docs/bundles.md for every key."""
    name: str
    preprocessing: Preprocessing
    grid: tuple[int, int]
    """Rows and columns of the visual tokens, which are in row order."""
    tokens_before_grid: int
    """Number of visual tokens before those of the grid, such as a class token; they stand for no cell."""
    token_width: int
    class_names: tuple[str, ...]
    """Classes of the detector in the order of its scores; empty without a detector."""
    detector: DetectorFacts | None

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> "VisionBundle":
        """Read and check the vision graph of a bundle, with a captioner or without; as :meth:`Bundle.load`."""
        read = _open(path)
        read.check_files(VISION_GRAPH)
        return VisionBundle(**_read_vision(read))

    def read_graph(self, name: str) -> bytes:
        """Read a graph; a captioner graph is returned with its weights.

        Engines get these bytes and open no file, so that links are followed and later changes of files have no effect.

        Raises:
            BundleError: a file cannot be read, or differs from the manifest.
        """
        return b"".join(map(self._read, (name, WEIGHTS) if name in CAPTIONER_GRAPHS.values() else (name,)))

    def _read(self, name: str) -> bytes:
        path = self.path / name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise BundleError(f"{path} cannot be read: {error.strerror}") from None
        if sha256_of_bytes(content) != self.manifest["files"][name]["sha256"]:
            raise BundleError(f"{path} was changed after the bundle was opened; put the bundle into a new folder")
        return content


@dataclass(frozen=True)
class Bundle(VisionBundle):
    """A bundle whose files agree with its manifest; created by :meth:`load`."""

    captioner_inputs: tuple[str, ...]
    """Inputs of the captioner graph, some of :data:`CAPTIONER_INPUTS`."""
    search: Search
    vocabulary: Vocabulary
    min_detail: float
    """Frames with less :func:`smart_caption_ros.imaging.detail.detail_of` show too little to caption; 0: no limit."""
    calibration: Callable[[Mapping[str, float]], float] | None
    """Calibrated confidence by :func:`smart_caption_ros.captioning.calibration.caption_features`; None in a bundle
    without it."""
    precision: str
    """Precision that the graphs compute in: ``float32``, ``float16`` or ``int8``."""
    parameters: int
    """Number of parameters of all graphs."""

    @property
    def can_be_guided(self) -> bool:
        """Whether the captioner graph has :data:`GUIDE_INPUTS`."""
        return WORD_BIAS in self.captioner_inputs

    @property
    def static_graph(self) -> Path | None:
        """File of the captioner graph with fixed shapes, for engines without control flow; None where it is absent."""
        return self.path / STATIC_GRAPH if STATIC_GRAPH in self.manifest["files"] else None

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> "Bundle":
        """Read and check a bundle; without a path, the one that ships with the package.

        Raises:
            BundleError: the bundle is missing, malformed, changed after export or of another format.
        """
        read = _open(path)
        if not read.has_captioner:
            raise BundleError(
                f"{read.folder} holds a vision graph without a captioner: it computes features and no captions; give "
                "a bundle that was exported with a captioner"
            )
        bundle = cls(
            **_read_vision(read),
            captioner_inputs=_read_captioner_inputs(read),
            search=_read_search(read),
            vocabulary=_read_vocabulary(read),
            min_detail=float(
                read.value("min_detail", (int, float), "a number from 0 to 255", lambda number: 0 <= number <= 255)
            ),
            calibration=_read_calibration(read),
            precision=read.value("precision.computed", str, "float32, float16 or int8", bool),
            parameters=read.integer("architecture.parameters"),
        )
        read.check_files(VISION_GRAPH, CAPTIONER_GRAPH, WEIGHTS)
        return bundle


def load_bundle(path: str | os.PathLike[str] | None = None) -> VisionBundle:
    """Read a bundle, or one that holds a vision graph alone; as :meth:`Bundle.load`."""
    return (Bundle if _open(path).has_captioner else VisionBundle).load(path)


def _open(path: str | os.PathLike[str] | None) -> "_Reader":
    """Read a manifest; raises BundleError if this package cannot run the bundle."""
    folder = default_bundle_path() if path is None else Path(path)
    read = _Reader(folder, _read_manifest(folder))
    if "imported_from" in read.manifest and VISION_GRAPH not in read.file_names():
        raise BundleError(
            f"{folder} captions stored region features ({read.manifest['imported_from']}) and has no vision graph, so "
            "a robot cannot run it; score it with `python -m training.evaluate --checkpoint "
            f"{folder / 'captioner.safetensors'}`"
        )
    version = read.integer("format_version")
    if version != FORMAT_VERSION:
        remedy = "is newer: update smart_caption_ros" if version > FORMAT_VERSION else "is older: export it again"
        raise BundleError(f"{folder}: this package reads bundle format {FORMAT_VERSION}, and format {version} {remedy}")
    return read


def _read_vision(read: "_Reader") -> dict[str, Any]:
    names = read.value("class_names", list, "a list of names", lambda v: all(isinstance(n, str) for n in v))
    return {
        "path": read.folder,
        "manifest": read.manifest,
        "name": read.value("name", str, "a name", bool),
        "preprocessing": _read_preprocessing(read),
        "grid": (read.integer("tokens.rows"), read.integer("tokens.columns")),
        "tokens_before_grid": read.value(
            "tokens.before_grid", int, "a whole number, 0 or more", lambda number: number >= 0
        ),
        "token_width": read.integer("tokens.width"),
        "class_names": tuple(names),
        "detector": _read_detector(read),
    }


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        if not folder.exists():
            raise BundleError(f"{folder}: no such bundle; give the folder that `python -m export` wrote")
        if not folder.is_dir():
            raise BundleError(f"{folder} is a file; a bundle is the folder that holds {MANIFEST}")
        manifest = json.loads(replace_lone_surrogates((folder / MANIFEST).read_text(encoding="utf-8-sig")))
    except FileNotFoundError:
        raise BundleError(f"{folder} has no {MANIFEST}, so it is not a bundle") from None
    except OSError as error:
        raise BundleError(f"{folder / MANIFEST} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of json.loads; UnicodeDecodeError is a ValueError
        raise BundleError(f"{folder / MANIFEST} is not JSON ({error}); copy the bundle again") from None
    if not isinstance(manifest, dict):
        raise BundleError(f"{folder / MANIFEST} must hold a JSON object, not a {type(manifest).__name__}")
    return manifest


def _read_preprocessing(read: "_Reader") -> Preprocessing:
    width, height = read.integer("preprocessing.width"), read.integer("preprocessing.height")
    interpolation = read.value("preprocessing.interpolation", str, "a name", bool)
    sides = {
        key: read.integer(f"preprocessing.{key}")
        for key in ("shorter_side", "longer_side_first")
        if key in read.manifest["preprocessing"]
    }
    with read.errors_named("preprocessing"):
        return Preprocessing(width, height, interpolation, **sides)


def _read_vocabulary(read: "_Reader") -> Vocabulary:
    path = read.checked_file(VOCABULARY)
    joining = {
        key: read.value(f"vocabulary.{key}", kind, f"a {kind.__name__}", lambda value: True)
        for key, kind in (("continuation", str), ("attachment", str), ("clean_up", bool))
    }
    with read.errors_named(f"{VOCABULARY} is malformed"):
        return Vocabulary.load(path, **joining)


def _read_captioner_inputs(read: "_Reader") -> tuple[str, ...]:
    names = read.value(
        "captioner_inputs", list, f"a list with tokens and any others of {', '.join(CAPTIONER_INPUTS[1:])}",
        lambda names: "tokens" in names
        and all(names.count(name) == 1 and name in CAPTIONER_INPUTS for name in names)
        and len({*names} & {*GUIDE_INPUTS}) in (0, len(GUIDE_INPUTS)),
    )  # fmt: skip
    return tuple(names)


def _read_search(read: "_Reader") -> Search:
    for field in fields(Search):
        read.value(f"decoding.{field.name}", object, "a setting of the search", lambda value: True)
    with read.errors_named("decoding"):
        return Search.from_json(read.manifest["decoding"])


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

    @contextmanager
    def errors_named(self, part: str) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise BundleError(f"{self.folder / MANIFEST}: {part}: {error}; export the bundle again") from None

    def value(self, key: str, kind: type | tuple[type, ...], wanted: str, valid: Callable[[Any], bool]) -> Any:
        value: Any = self.manifest
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                raise BundleError(f"{self.folder / MANIFEST} lacks {key}; export the bundle again")
            value = value[part]
        # In Python True is an int; in a manifest it is not a number.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object)) or not valid(value):
            raise BundleError(f"{self.folder / MANIFEST}: {key} must be {wanted}, not {value!r}")
        return value

    def integer(self, key: str) -> int:
        return int(self.value(key, int, "a positive whole number", lambda number: number > 0))

    @property
    def has_captioner(self) -> bool:
        return "decoding" in self.manifest or CAPTIONER_GRAPH in self.file_names()

    def file_names(self) -> list[str]:
        return list(self.value("files", dict, "an object of files", bool))

    def check_files(self, *needed: str) -> None:
        """Check that the needed files are listed, that all files are unchanged, and that no graph names other files."""
        for name in dict.fromkeys((*needed, *self.file_names())):
            path = self.checked_file(name)
            if path.suffix in (".onnx", ".weights") and _EXTERNAL_DATA.search(path.read_bytes()):
                raise BundleError(
                    f"{path} takes weights from another file, perhaps outside the bundle; do not use a bundle like that"
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
        try:
            if not path.is_file():
                raise BundleError(f"{path} is missing; copy the whole bundle folder again")
            size, sha256 = path.stat().st_size, sha256_of(path)
        except OSError as error:
            raise BundleError(f"{path} cannot be read: {error.strerror}") from None
        if size != facts["bytes"]:
            raise BundleError(f"{path} has {size} bytes instead of {facts['bytes']}; copy the bundle again")
        if sha256 != facts["sha256"]:
            raise BundleError(f"{path} was changed after export (its sha256 differs); copy the bundle again")
        return path
