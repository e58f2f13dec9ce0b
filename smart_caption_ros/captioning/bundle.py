"""The bundle: one folder that is a model.

``manifest.json`` describes the folder and lists every other file with its size and sha256. Reading a bundle checks
all of it, so that whatever runs afterwards may trust it. The format is described in docs/bundles.md.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_caption_ros.captioning.errors import BundleError
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.detection.layouts import LAYOUT_NAMES
from smart_caption_ros.engines.base import GraphForm
from smart_caption_ros.engines.external_data import external_locations
from smart_caption_ros.files import sha256_of, write_text_atomically

FORMAT_VERSION = 2
"""The newest that is read. Bundles whose vision graph finds objects are of 2, all others of 1."""
MANIFEST = "manifest.json"
VISION_GRAPH, CAPTIONER_GRAPH, VOCABULARY = "vision.onnx", "captioner.onnx", "vocabulary.txt"
STATIC_GRAPH = "captioner_static.onnx"
WEIGHTS = "captioner.weights"
DETECTOR_GRAPH = "detector.onnx"
CAPTIONER_GRAPHS: Mapping[GraphForm, str] = {"dynamic": CAPTIONER_GRAPH, "static": STATIC_GRAPH}
"""The captioner's file by the form of its graph."""
VISION_LAYOUT = "vision"
"""In place of a layout of :data:`smart_caption_ros.detection.layouts.LAYOUT_NAMES` where the vision graph
finds the objects itself."""


def default_bundle_path() -> Path:
    """Folder of the bundle that ships with the package."""
    return Path(__file__).resolve().parent.parent / "bundles" / "default"


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write ``manifest.json`` into a bundle folder: whole, or not at all."""
    write_text_atomically(folder / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class Preprocessing:
    """What happens to a frame before the vision graph: it is squashed to ``width`` x ``height``, nothing else."""

    width: int
    height: int


@dataclass(frozen=True)
class DetectorFacts:
    """What a manifest says of the bundle's detector, beside ``class_names``."""

    layout: str
    """One of :data:`smart_caption_ros.detection.layouts.LAYOUT_NAMES`, or :data:`VISION_LAYOUT`."""
    minimum_score: float
    """Objects below it are left out."""


@dataclass(frozen=True)
class Bundle:
    """A bundle whose files have been checked against its manifest; made by :meth:`load`."""

    path: Path
    manifest: Mapping[str, Any]
    """The manifest as read; see docs/bundles.md for every key."""
    name: str
    preprocessing: Preprocessing
    grid: tuple[int, int]
    """Rows and columns of the visual tokens, row by row over the frame."""
    token_width: int
    beam_size: int
    max_words: int
    class_names: tuple[str, ...]
    """The detector's, in its order; empty where there is no detector."""
    vocabulary: Vocabulary
    detector: DetectorFacts | None
    """None for a bundle without a detector."""

    @property
    def static_graph(self) -> Path | None:
        """The captioner graph with fixed shapes, for engines without control flow; None where there is none."""
        return self.path / STATIC_GRAPH if STATIC_GRAPH in self.manifest["files"] else None

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> "Bundle":
        """Read and check a bundle; without a path, the one that ships with the package.

        Raises:
            BundleError: one sentence for every way in which a bundle can be wrong.
        """
        folder = default_bundle_path() if path is None else Path(path)
        manifest = _read_manifest(folder)
        read = _Reader(folder, manifest)
        version = read.integer("format_version")
        if version > FORMAT_VERSION:
            raise BundleError(
                f"{folder}: bundle format {version} is newer than this package reads ({FORMAT_VERSION}); "
                "update smart_caption_ros"
            )
        bundle = cls(
            path=folder,
            manifest=manifest,
            name=read.value("name", str, "a name", bool),
            preprocessing=Preprocessing(
                width=read.integer("preprocessing.width"), height=read.integer("preprocessing.height")
            ),
            grid=(read.integer("tokens.rows"), read.integer("tokens.columns")),
            token_width=read.integer("tokens.width"),
            beam_size=read.integer("decoding.beam_size"),
            max_words=read.integer("decoding.max_words"),
            class_names=tuple(
                read.value("class_names", list, "a list of names", lambda v: all(isinstance(n, str) for n in v))
            ),
            vocabulary=_read_vocabulary(read.checked_file(VOCABULARY)),
            detector=_read_detector(read),
        )
        for name in dict.fromkeys((VISION_GRAPH, CAPTIONER_GRAPH, *read.file_names())):
            read.checked_file(name)
        for name in read.file_names():
            if name.endswith(".onnx"):
                read.check_graph(name)
        return bundle


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        raise BundleError(f"{folder}: no such bundle; give the folder that `python -m export` wrote")
    if not folder.is_dir():
        raise BundleError(f"{folder} is a file; a bundle is the folder that holds {MANIFEST}")
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BundleError(f"{folder} has no {MANIFEST}, so it is not a bundle") from None
    except OSError as error:
        raise BundleError(f"{folder / MANIFEST} cannot be read: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BundleError(f"{folder / MANIFEST} is not JSON ({error}); copy the bundle again") from None
    if not isinstance(manifest, dict):
        raise BundleError(f"{folder / MANIFEST} must hold a JSON object, not a {type(manifest).__name__}")
    return manifest


def _read_vocabulary(path: Path) -> Vocabulary:
    try:
        return Vocabulary.load(path)
    except (ValueError, UnicodeDecodeError) as error:
        raise BundleError(f"{path} is malformed: {error}") from None


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
    """Typed access to the manifest, with the key in every complaint."""

    folder: Path
    manifest: dict[str, Any]

    def value(self, key: str, kind: type | tuple[type, ...], wanted: str, valid: Callable[[Any], bool]) -> Any:
        value: Any = self.manifest
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                raise BundleError(f"{self.folder / MANIFEST} lacks {key}; export the bundle again")
            value = value[part]
        # bool is an int in Python, never in a manifest
        if not isinstance(value, kind) or isinstance(value, bool) or not valid(value):
            raise BundleError(f"{self.folder / MANIFEST}: {key} must be {wanted}, not {value!r}")
        return value

    def integer(self, key: str) -> int:
        return int(self.value(key, int, "a positive whole number", lambda number: number > 0))

    def file_names(self) -> list[str]:
        return list(self.value("files", dict, "an object of files", bool))

    def check_graph(self, name: str) -> None:
        """Refuse a graph that takes its weights from anywhere but a checked file of the bundle."""
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
        """Path of a listed file that is there with its size and sha256."""
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
