"""Visual tokens that are read from files, with boxes where the files have them."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.files import sha256_of_bytes
from training.configs.schema import FeaturesConfig, PhaseConfig
from training.data.feature_formats import check_images, open_features
from training.data.feature_store import FeatureStore
from training.data.region_batches import open_batches
from training.data.regions import RegionFeatures
from training.data.visual_batches import VisualBatch
from training.models.captioner import Captioner, Visual


class StoredFeatures:
    """Features of a network that is not part of the model; a :class:`training.data.visual_batches.VisualInputs`."""

    backbone = None

    def __init__(
        self,
        features: RegionFeatures,
        splits: dict[str, list[str]],
        facts: dict[str, Any],
        family: type[Captioner] = Captioner,
    ) -> None:
        """
        Args:
            features: of all images of the splits.
            splits: image ids of ``train`` and ``dev``.
            facts: origin of the features.
            family: of the captioner; says whether boxes are needed.

        Raises:
            DataError: images have no features, or an image lacks what the family needs.
        """
        self.token_width = features.width
        self._train = splits["train"]
        self.facts = {"features": facts}
        for split, images in splits.items():
            check_images(features, images, f"features: {split}")
        self._batches = {split: open_batches(features, images, family) for split, images in splits.items()}
        for batches in self._batches.values():
            batches.read(np.arange(1))  # fails before training instead of hours later

    def begin_phase(self, phase: PhaseConfig) -> None:
        pass

    def begin_epoch(self, epoch: int) -> None:
        pass

    def training_batch(self, images: np.ndarray) -> VisualBatch:
        return self._batches["train"].read(images)

    def dev_batch(self, images: np.ndarray) -> VisualBatch:
        return self._batches["dev"].read(images)

    def pooled(self, images: np.ndarray) -> NDArray[np.float32]:
        tokens, mask, *_ = self._batches["train"].read(images)
        if mask is None:
            return tokens.float().mean(dim=1).numpy()
        real = mask[..., None].float()
        pooled: NDArray[np.float32] = ((tokens.float() * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)).numpy()
        return pooled

    def pooled_key(self) -> list[Any]:
        images = self._train
        samples = self.pooled(np.array([0, len(images) // 2, len(images) - 1]))
        return [self.facts, sha256_of_bytes(samples.tobytes()), list(images)]

    def visual(self, batch: VisualBatch) -> Visual:
        return visual_of_features(batch)


def visual_of_features(batch: VisualBatch) -> Visual:
    """Make the captioner's input of a batch: tokens of a store are float16 up to here, and float32 from here on."""
    return Visual(batch.values.float(), batch.mask, batch.boxes_xyxy)


def open_stored_features(config: FeaturesConfig, data: Path) -> tuple[RegionFeatures, dict[str, Any]]:
    """Open the features of an experiment.

    Args:
        config: the entry ``features`` of the experiment.
        data: folder that contains its paths.

    Returns:
        The features, and their origin as JSON values.

    Raises:
        DataError: they are missing or malformed.
    """
    features = open_features(config.kind, config.paths(data), config.width, config.max_regions)
    facts: dict[str, Any] = {"kind": config.kind}
    if isinstance(features, FeatureStore):
        facts["source"] = features.source
    return features, facts
