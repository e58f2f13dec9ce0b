"""What is exported: the trained captioner, rounded as it will be stored, and where its visual tokens come from.

All options are checked here, before anything is traced.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from export.bundle import ExportError, check_destination
from export.options import ExportOptions
from export.storage import round_to_float16, round_to_int8
from export.vision import attach_backbone, export_vision, vision_bundle_for, visual_by
from smart_caption_ros.captioning import default_bundle_path
from smart_caption_ros.captioning.bundle import VISION_GRAPH, VisionBundle
from smart_caption_ros.imaging import ImageError, read_image
from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.configs.parsing import build_config
from training.configs.schema import DataConfig
from training.data.caption_dataset import CaptionDataset
from training.data.datasets import open_dataset
from training.data.feature_extraction import SUFFIXES
from training.data.photographs import visible_files
from training.data.visual_inputs import visual_of_images
from training.decoding.beam_search import Hypotheses
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import ConfigError, DataError
from training.models.captioner import Visual
from training.models.eight_bits import rounded_once, set_eight_bits
from training.paths import data_folder


@dataclass(frozen=True)
class CheckImages:
    """Photographs that an export is checked on: those of a folder (``--calibration``), of the dev split of the run's
    own data, or frames that ship.
    """

    description: str
    names: Sequence[str]
    """File paths, or image ids of the data set."""
    dataset: CaptionDataset | None = None
    """Has the photographs and their captions; None where they are files."""

    @classmethod
    def find(cls, folder: Path | None, data: Mapping[str, Any]) -> "CheckImages":
        """Find the photographs of an export.

        Args:
            folder: folder of image files; None: the dev split, or frames that ship where the data is missing.
            data: the entry ``data`` of the run's experiment.

        Raises:
            ExportError: the folder has no photographs.
        """
        if folder is not None:
            files = [str(path) for path in visible_files(folder) if path.suffix.lower() in SUFFIXES]
            if not files:
                raise ExportError(f"--calibration: {folder} has no photographs ({', '.join(SUFFIXES)})")
            return cls(f"photographs of {folder}", files)
        try:
            config = build_config(DataConfig, data, "record", ignore_unknown_keys=True)
            dataset = open_dataset(config, data_folder())
            names = dataset.split("dev")
            dataset.check_photographs(names)
        except (ConfigError, DataError, KeyError, TypeError, ValueError):  # or a data set of an earlier version
            shipped = default_bundle_path().parents[1] / "sequences"
            return cls("frames that ship", sorted(str(path) for path in shipped.rglob("*.jpg")))
        return cls("dev photographs", names, dataset)

    def read(self, count: int) -> list[np.ndarray]:
        """Read the first photographs, (H, W, 3) uint8 BGR each.

        Raises:
            ExportError: a file is no image.
            DataError: a photograph of the data set is missing or broken.
        """
        names = list(self.names[:count])
        return list(self.dataset.read_images(names)) if self.dataset else [_read(name) for name in names]


def _read(path: str) -> np.ndarray:
    try:
        return read_image(Path(path))
    except ImageError as error:
        raise ExportError(f"{path}: {error}") from None


@dataclass(frozen=True)
class Source:
    """What :func:`load_source` makes of a checkpoint."""

    trained: TrainedCaptioner
    """Its weights are rounded as they will be stored, so that what is compared with torch, scored and shipped is one
    and the same model."""
    unrounded_captions: Sequence[Sequence[str]]
    """Words of torch's captions of the photographs before rounding; empty where no weights are rounded."""
    vision_bundle: VisionBundle | None
    """The bundle whose vision graph the captioner takes over; None for a captioner with a backbone."""
    visual: Callable[[np.ndarray], Visual] | None
    """Computes the captioner's input of frames with that bundle's graph; None without such a bundle."""
    detects: bool
    """Whether the backbone's detector is exported."""
    preprocessing: Preprocessing
    """Preprocessing of the vision graph's frames."""
    tokens: int
    """Number of visual tokens of a frame."""
    photographs: Sequence[np.ndarray]
    """Photographs on which the bundle is checked, (H, W, 3) uint8 BGR each."""
    photographs_description: str
    frames: np.ndarray
    """The photographs as the vision graph takes them, (B, H, W, 3) uint8."""
    trained_in_8_bits: bool = False
    """Whether the captioner was trained in 8 bits; with ``--precision int8`` it computes in 8 bits either way."""

    def vision_graph(self, *, fused_attention: bool) -> onnx.ModelProto:
        """Export the captioner's backbone, or read the other bundle's graph; see :func:`export_vision`."""
        if self.vision_bundle is not None:
            return onnx.load(str(self.vision_bundle.path / VISION_GRAPH))
        assert self.trained.backbone is not None
        return export_vision(self.trained.backbone, detects=self.detects, fused_attention=fused_attention)


def load_source(options: ExportOptions, trained: TrainedCaptioner | None = None) -> Source:
    """Read the checkpoint, unless its captioner is given as ``trained``, and check the options.

    Raises:
        ExportError: an option is out of range or does not fit the captioner.
        CheckpointError: the checkpoint is missing or malformed, or does not allow these settings of the search or
            this size of frames.
        BundleError: the bundle of ``vision_from`` is missing or wrong.
    """
    check_destination(options.bundle, replace=options.replace)
    trained = trained or TrainedCaptioner.load(options.checkpoint)
    trained_in_8_bits = trained.eight_bits
    trained.change_search(
        beam_size=options.beam_size,
        max_words=_longest_caption(trained, options.max_words),
        repeat_penalty=options.repeat_penalty,
        end_penalty=options.end_penalty,
    )
    attach_backbone(trained, data_folder())
    trained.set_image_size(options.image_size)
    if options.precision == "int8":
        set_eight_bits(trained.captioner, True)
    vision_bundle = vision_bundle_for(trained, options.vision_from)
    if vision_bundle is None:
        assert trained.backbone is not None
        preprocessing, tokens = trained.backbone.spec.preprocessing, trained.backbone.spec.tokens
    else:
        preprocessing = vision_bundle.preprocessing
        tokens = math.prod(vision_bundle.grid) + vision_bundle.tokens_before_grid
    found = CheckImages.find(options.calibration, trained.record["experiment"]["data"])
    photographs = found.read(options.check_images)
    frames = np.stack([preprocessing.apply(photograph) for photograph in photographs])
    visual = visual_by(vision_bundle) if vision_bundle else None
    unrounded: list[list[str]] = []
    if options.rounded:
        unrounded = [trained.words(caption_by_torch(trained, frame, visual)[1])[0] for frame in frames]
        round_to_float16(trained.captioner)
        if trained.backbone is not None:
            round_to_float16(trained.backbone)
            if options.int8_storage:
                round_to_int8(trained.backbone.trainable)
    return Source(
        trained=trained,
        unrounded_captions=unrounded,
        vision_bundle=vision_bundle,
        visual=visual,
        detects=trained.backbone is not None and bool(trained.backbone.class_names) and options.detector,
        preprocessing=preprocessing,
        tokens=tokens,
        photographs=photographs,
        photographs_description=found.description,
        frames=frames,
        trained_in_8_bits=trained_in_8_bits,
    )


def caption_by_torch(
    trained: TrainedCaptioner, frame: np.ndarray, visual_of: Callable[[np.ndarray], Visual] | None
) -> tuple[Visual, Hypotheses]:
    """Caption a frame, (H, W, 3) uint8, with torch; return the captioner's input as well.
    ``visual_of``: computes the input; None: the captioner's own backbone does.
    """
    with torch.inference_mode(), rounded_once():
        if visual_of is not None:
            visual = visual_of(frame[None])
        else:
            assert trained.backbone is not None
            visual = visual_of_images(trained.backbone, torch.from_numpy(frame[None]))
        return visual, trained.caption(visual)


def _longest_caption(trained: TrainedCaptioner, wanted: int | None) -> int:
    """Return ``--max-words``, or the longest caption of the checkpoint's search.

    Raises:
        ExportError: the captioner cannot decode that many words.
    """
    longest = trained.captioner.max_words
    max_words = wanted or trained.search.max_words
    if longest is not None and not 2 <= max_words <= longest:
        raise ExportError(f"--max-words must lie between 2 and {longest}, the longest that this model can say")
    if max_words < 2:
        raise ExportError(f"--max-words must be at least 2, not {max_words}")
    return max_words
