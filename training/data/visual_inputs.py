"""The visual inputs of a captioner: tokens that its backbone computes of photographs, or stored tokens.

A batch is made in two steps, so that the first can run ahead of the training step: reading on the host (photographs, or
tokens that were computed before), then making tokens on the device (by the backbone, where photographs were read).
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from smart_caption_ros.captioning.vision import grid_boxes
from smart_caption_ros.files import sha256_of_bytes
from training.checkpoint import load_checkpoint
from training.configs.schema import ExperimentConfig, PhaseConfig
from training.data.caption_dataset import CaptionDataset
from training.data.datasets import merge_provenance, provenance_of_record
from training.data.feature_store import FeatureStore, StoreWriter
from training.data.regions import RegionFeatures
from training.data.stored_features import check_images, open_stored_features, read_batch, visual_of_features
from training.data.views import EpochViews
from training.errors import ConfigError, DataError
from training.models import FAMILIES
from training.models.attention import converted_for_products
from training.models.captioner import Captioner, Visual
from training.models.layers import mean_of_real
from training.vision.backbone import Backbone, CachesEarlyLayers
from training.vision.released_weights import CHECKPOINT_SUFFIX, PUBLISHED, locate, open_backbone, released_provenance
from training.vision.side_by_side import SideBySide, side_by_side
from training.vision.yolox import DETECTION_CLASSES, RELEASED, load_yolox_nano, with_classes

HostBatch: TypeAlias = Any
"""B images as they are read on the host: any tree of tensors; :class:`Visual` for stored features."""


class VisualInputs:
    """Base class of the visual side of the training and dev splits.

    Methods that read images raise :class:`DataError` for one that cannot be read.
    """

    token_width: int
    """Width of a visual token."""
    backbone: Backbone | None = None
    """The network that makes the tokens and is part of the model; None for stored features."""
    facts: dict[str, Any]
    """Origin of the tokens, JSON values for the record of the model."""

    def begin_phase(self, phase: PhaseConfig, precision: str) -> None:
        """Prepare the batches of a phase; the backbone has the weights that the phase starts from.
        ``precision``: in which the run computes: features that are kept are those of one precision.
        """

    def begin_epoch(self, epoch: int) -> None:
        """Choose the view of every image in an epoch of the phase, counted from 0."""

    def flush(self) -> None:
        """Write the features that were computed since the last call, for other processes and later runs."""

    def training_batch(self, images: np.ndarray) -> HostBatch:
        """Read images of the training split, (B,) indices; may be called in other threads."""
        raise NotImplementedError

    def dev_batch(self, images: np.ndarray) -> HostBatch:
        """Read images of the dev split without augmentation, as :meth:`training_batch` does."""
        raise NotImplementedError

    def pooled(self, images: np.ndarray) -> NDArray[np.float32]:
        """Compute the mean token of training images without augmentation, (B, token_width); outside of phases."""
        raise NotImplementedError

    def pooled_key(self) -> list[Any]:
        """Return JSON values that identify images and weights from which :meth:`pooled` is computed."""
        raise NotImplementedError

    def visual(self, batch: HostBatch) -> Visual:
        """Make the captioner's input; the tokens have a gradient in a phase that trains the backbone."""
        raise NotImplementedError


_AT_A_TIME = 50
"""Photographs that a network computes at a time without gradients: no layer's output is kept, so that parts of a large
batch need less memory."""
_SHARD_BYTES = 128 << 20
"""Computed features that are in memory before they are written."""
_MIRRORED = "|mirrored"
"""Ends the names of mirror images in a store."""


class PhotographBatch(NamedTuple):
    """Views of B photographs as they are read on the host."""

    frames: Tensor | None
    """(M, H, W, 3) uint8 BGR, of the backbone's size: views whose features are not kept yet, or all views in a phase
    that keeps none. None if there are none."""
    features: Tensor | None = None
    """(B, rows, width) float16, features that are kept, 0 for the views in ``frames``. None in a phase that keeps
    none."""
    missing: Sequence[str] = ()
    """M names of the views in ``frames``, under which their features are to be kept."""
    rows: Tensor | None = None
    """(M,) int64, the rows of ``features`` that belong to ``frames``."""


class BackboneInputs(VisualInputs):
    """Tokens of photographs through a backbone, with the boxes of the grid's cells.

    What does not learn in a phase is computed once for a view of a photograph and kept in a feature store: the tokens
    of a frozen backbone, or the early features of one whose early layers are frozen. Features are computed in the step
    that first needs them, by the process that needs them, so there is no pass over the photographs before training.

    Image sizes are unknown, because data sets return photographs resized to one size.
    """

    def __init__(
        self,
        dataset: CaptionDataset,
        splits: dict[str, list[str]],
        backbone: Backbone,
        facts: dict[str, Any],
        cache: Path,
        *,
        seed: int = 1,
    ) -> None:
        """Take the photographs of ``train`` and ``dev``.
        ``cache``: folder for features, shared between runs.

        Raises:
            DataError: photographs are missing.
        """
        for images in splits.values():
            dataset.check_photographs(images)
        self.backbone: Backbone = backbone
        self.token_width, self.facts = backbone.spec.token_width, facts
        self._dataset, self._splits, self._cache = dataset, splits, cache
        self._seed = seed
        self._phase: PhaseConfig | None = None
        self._views: EpochViews | None = None
        self._store: StoreWriter | None = None
        self._kept_splits: tuple[str, ...] = ()
        self._names: dict[str, Sequence[str]] = {}
        self._boxes = torch.from_numpy(boxes_of_tokens(backbone))

    def begin_phase(self, phase: PhaseConfig, precision: str) -> None:
        self.flush()
        self._phase, self._store, self._kept_splits = phase, None, ()
        self.backbone.requires_grad_(False)
        if phase.trains_backbone:
            self.backbone.trainable.requires_grad_(True)
            if not phase.backbone_coarse_only:
                return
            assert isinstance(self.backbone, CachesEarlyLayers)
            for layer in self.backbone.early_layers:
                layer.requires_grad_(False)
        self._open_features(phase, precision)

    def _open_features(self, phase: PhaseConfig, precision: str) -> None:
        """Open the features of views that may occur more than once in the phase."""
        backbone = self.backbone
        rows, width = backbone.spec.tokens, backbone.spec.token_width
        if phase.trains_backbone:
            assert isinstance(backbone, CachesEarlyLayers)
            rows, width = 1, backbone.early_width
        source = {
            "made_by": "a run's backbone, for its early layers" if phase.trains_backbone else "a run's backbone",
            "weights_sha256": fingerprint(backbone),
            "preprocessing": asdict(backbone.spec.preprocessing),
            "precision": precision,
        }
        folder = self._cache / f"tokens-{sha256_of_bytes(json.dumps(source).encode())[:16]}"
        view_bytes = rows * width * 2
        self._store = StoreWriter(folder, source, width, max(1, _SHARD_BYTES // view_bytes))
        self._kept_splits = ("train", "dev") if phase.has_fixed_views else ("dev",)
        views = {name for split in self._kept_splits for name in self._photograph_names(split)}
        if phase.has_fixed_views and phase.flip:
            views |= {name + _MIRRORED for name in self._photograph_names("train")}
        _announce(folder, view_bytes * sum(view not in self._store for view in views))

    def _photograph_names(self, split: str) -> Sequence[str]:
        """Return the names of a split's photographs in a store: they change with the photographs' content."""
        if split not in self._names:
            self._names[split] = [*map(self._dataset.photographs.key, self._splits[split])]
        return self._names[split]

    def begin_epoch(self, epoch: int) -> None:
        assert self._phase is not None
        self._views = EpochViews(len(self._splits["train"]), self._phase, self._seed, epoch)
        self.flush()

    def flush(self) -> None:
        if self._store is not None:
            self._store.flush()

    def training_batch(self, images: np.ndarray) -> PhotographBatch:
        assert self._views is not None
        return self._batch("train", images, self._views.mirrored[images])

    def dev_batch(self, images: np.ndarray) -> PhotographBatch:
        return self._batch("dev", images, np.zeros(len(images), bool))

    def _batch(self, split: str, images: NDArray[np.integer], mirrored: NDArray[np.bool_]) -> PhotographBatch:
        if (store := self._store) is None or split not in self._kept_splits:
            return PhotographBatch(torch.from_numpy(self._read(split, images)))
        names = self._photograph_names(split)
        ends = np.where(mirrored, _MIRRORED, "")
        views = [f"{names[image]}{end}" for image, end in zip(images, ends, strict=True)]
        found = [store.tokens(view) for view in views]
        nothing = np.zeros((1 if self._early else self.backbone.spec.tokens, store.store.width), np.float16)
        features = torch.from_numpy(np.stack([nothing if tokens is None else tokens for tokens in found]))
        rows = np.flatnonzero([tokens is None for tokens in found])
        if not len(rows):
            return PhotographBatch(None, features)
        frames = torch.from_numpy(self._read(split, images[rows]))
        return PhotographBatch(frames, features, [views[row] for row in rows], torch.from_numpy(rows))

    @property
    def _early(self) -> bool:
        """Whether the features that are kept are those of the early layers."""
        assert self._phase is not None
        return self._phase.trains_backbone

    def _read(self, split: str, images: NDArray[np.integer]) -> np.ndarray:
        names = [self._splits[split][image] for image in images]
        photographs = self._dataset.read_images(names, self.backbone.spec.preprocessing)
        if split == "dev":
            return photographs
        assert self._views is not None
        return self._views.cut(photographs, images)

    def pooled(self, images: np.ndarray) -> NDArray[np.float32]:
        names = [self._splits["train"][image] for image in images]
        frames = self._dataset.read_images(names, self.backbone.spec.preprocessing)
        device = next(self.backbone.parameters()).device
        with torch.no_grad():
            tokens = _in_parts(self.backbone, torch.from_numpy(frames).to(device))
        pooled: NDArray[np.float32] = tokens.float().mean(dim=1).cpu().numpy()
        return pooled

    def pooled_key(self) -> list[Any]:
        self.backbone.requires_grad_(False)  # the fingerprint is that of the weights that do not learn
        names = list(self._photograph_names("train"))
        return [fingerprint(self.backbone), asdict(self.backbone.spec.preprocessing), names]

    def visual(self, batch: PhotographBatch) -> Visual:
        assert self._phase is not None
        learns = self._phase.trains_backbone
        if batch.features is None:
            assert batch.frames is not None
            with torch.set_grad_enabled(learns and torch.is_grad_enabled()):
                tokens = _in_parts(self.backbone, batch.frames)
        else:
            features = self._complete(batch)
            tokens = self.backbone(features.squeeze(1)) if learns else features
        boxes = self._boxes.to(tokens.device)
        return Visual(tokens, boxes_xyxy=boxes.expand(len(tokens), -1, -1))

    def _complete(self, batch: PhotographBatch) -> Tensor:
        """Compute the features of a batch that are not kept yet, keep them, and return all of them, (B, rows, width).

        Computed features are rounded to float16 like the kept ones, so that a step is the same with either.
        """
        assert batch.features is not None
        features = batch.features
        if batch.frames is not None:
            assert batch.rows is not None
            with torch.no_grad():
                network: Callable[[Tensor], Tensor] = self.backbone
                if self._early:
                    assert isinstance(self.backbone, CachesEarlyLayers)
                    network = self.backbone.early_features
                computed = _in_parts(network, batch.frames).half()
                features = features.clone()
                # index_copy refuses float16 under autocast
                features[batch.rows] = computed.reshape(-1, *features.shape[1:]).to(features.dtype)
            self._keep(batch.missing, features[batch.rows].half().cpu().numpy())
        return converted_for_products(features.float())

    def _keep(self, views: Sequence[str], features: NDArray[np.float16]) -> None:
        assert self._store is not None
        for view, own in zip(views, features, strict=True):
            if not np.isfinite(own).all():
                raise DataError(
                    f"image {view}: the backbone computes features that float16 cannot hold, so they cannot be kept; "
                    "set crop of the phase below 1, e.g. 0.99, and none are kept"
                )
            if view not in self._store:
                self._store.add(view, own, None, None, None)


def _announce(folder: Path, size: int) -> None:
    """Say where features are kept, and how large those that are missing will be."""
    if not size:
        return
    free = shutil.disk_usage(folder).free
    tqdm.write(f"features are kept in {folder}: {size / 1e6:.1f} MB more", file=sys.stderr)
    if size > free:
        raise DataError(
            f"{folder}: the features need {size / 1e6:.1f} MB, but {free / 1e6:.1f} MB are free there; remove features "
            "of earlier runs from the folder above it"
        )


def fingerprint(network: nn.Module) -> str:
    """Compute the sha256 of the weights of a network that do not learn, which names the features that it computes."""
    learning = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        if name not in learning:
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _in_parts(network: Callable[[Tensor], Tensor], frames: Tensor) -> Tensor:
    return network(frames) if torch.is_grad_enabled() else torch.cat([*map(network, frames.split(_AT_A_TIME))])


def visual_of_images(backbone: Backbone, images_bgr: Tensor) -> Visual:
    """Make the captioner's input of images.
    ``images_bgr``: (B, H, W, 3) uint8 BGR, of the backbone's size.

    Raises:
        ValueError: they have another size; their tokens would be those of other cells.
    """
    height, width = images_bgr.shape[1:3]
    if (width, height) != (size := backbone.spec.preprocessing.size):
        raise ValueError(f"frames of {width} x {height} pixels, but the backbone takes those of {size[0]} x {size[1]}")
    boxes = torch.from_numpy(boxes_of_tokens(backbone)).to(images_bgr.device)
    return Visual(backbone(images_bgr), boxes_xyxy=boxes.expand(len(images_bgr), -1, -1))


def boxes_of_tokens(backbone: Backbone) -> NDArray[np.float32]:
    """Compute the boxes of a backbone's tokens, (N, 4) float32 xyxy, fractions of what it sees of a frame."""
    spec = backbone.spec
    return grid_boxes(spec.rows, spec.columns, spec.before)


class StoredInputs(VisualInputs):
    """Features of a network that is not part of the model."""

    def __init__(
        self,
        features: RegionFeatures,
        splits: dict[str, list[str]],
        facts: dict[str, Any],
        family: type[Captioner] = Captioner,
    ) -> None:
        """Open the features of the images of ``train`` and ``dev``; ``facts`` say where they are from.

        Raises:
            DataError: images have no features, or an image lacks what the family needs.
        """
        self.token_width = features.width
        self.facts = {"features": facts}
        self._features, self._splits = features, splits
        self._boxes_for = family.__name__ if family.needs_boxes else ""
        for split, images in splits.items():
            check_images(features, images, f"features: {split}")
            # Fails before training instead of hours later; the index of a store says more than its first image.
            known = features.entries if isinstance(features, FeatureStore) else {}
            lacking = [image for image in images if image in known and not known[image].has_boxes]
            read_batch(features, [*lacking, *images][:1], self._boxes_for)

    def _read(self, split: str, images: np.ndarray) -> Visual:
        return read_batch(self._features, [self._splits[split][image] for image in images], self._boxes_for)

    def training_batch(self, images: np.ndarray) -> Visual:
        return self._read("train", images)

    def dev_batch(self, images: np.ndarray) -> Visual:
        return self._read("dev", images)

    def pooled(self, images: np.ndarray) -> NDArray[np.float32]:
        tokens, mask, _ = self._read("train", images)
        pooled: NDArray[np.float32] = mean_of_real(tokens.float(), mask)[:, 0].numpy()
        return pooled

    def pooled_key(self) -> list[Any]:
        images = self._splits["train"]
        samples = self.pooled(np.array([0, len(images) // 2, len(images) - 1]))
        return [self.facts, sha256_of_bytes(samples.tobytes()), list(images)]

    def visual(self, batch: Visual) -> Visual:
        return visual_of_features(batch)


def open_visual_inputs(
    config: ExperimentConfig, data: Path, dataset: CaptionDataset, splits: dict[str, list[str]], cache: Path
) -> VisualInputs:
    """Open the visual inputs of an experiment.

    Raises:
        BackboneError: the backbone is missing or malformed.
        ConfigError: a backbone that is named with others, or with a detector, has several networks.
        DataError: photographs or features are missing, or features lack what the family needs.
    """
    if config.features:
        features, facts = open_stored_features(config.features, data)
        return StoredInputs(features, splits, facts, FAMILIES[config.family])
    names = [config.backbone, *config.more_backbones]
    trained_on = [entry for name in names for entry in backbone_provenance(name, data / "backbones")]
    facts = {"backbone": " + ".join(names), "backbone_trained_on": trained_on}
    networks = [open_backbone(name, data / "backbones") for name in names]
    backbone, detector = networks[0], None
    if config.yolox:
        yolox = load_yolox_nano(locate(config.yolox, data / "detectors"))
        detector = with_classes(yolox, DETECTION_CLASSES)
        trained_on.append(RELEASED)
        facts["detector"] = {"trained_on": [RELEASED]}
    if len(networks) > 1 or detector:
        for name, network in zip(names, networks, strict=True):
            if isinstance(network, SideBySide):
                raise ConfigError(
                    f"{name} has several networks; leave out more_backbones and yolox, or name other weights"
                )
        try:
            backbone = side_by_side(networks, detector)
        except ValueError as error:
            raise ConfigError(str(error)) from None
    if config.image_size:
        try:
            backbone.set_image_size(config.image_size, config.image_size)
        except ValueError as error:
            raise ConfigError(f"image_size: {error}") from None
    if not isinstance(backbone, CachesEarlyLayers) and any(phase.backbone_coarse_only for phase in config.phases):
        raise ConfigError(
            f"backbone_coarse_only: {config.backbone} has no early layers that are kept apart; leave it out"
        )
    return BackboneInputs(dataset, splits, backbone, facts, cache, seed=config.seed)


def backbone_provenance(name: str, folder: Path) -> list[dict[str, Any]]:
    """Collect name and terms of the data that a backbone was trained on.

    The backbone of a trained captioner has also learned from the captions of that captioner. Of published backbones
    only the name is known.
    """
    if name.partition("/")[0] in PUBLISHED:
        return [{"name": f"the published weights {name}", "terms": "those of the weights"}]
    path = locate(name, folder)
    if path.suffix != CHECKPOINT_SUFFIX or not path.exists():
        return released_provenance(path)
    record = load_checkpoint(path)[1]["record"]
    return merge_provenance(provenance_of_record(record), record["backbone_trained_on"])
