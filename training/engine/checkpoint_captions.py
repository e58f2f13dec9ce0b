"""Captions of a checkpoint: of photographs, or of the features that it was trained on."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from smart_caption_ros.captioning.vocabulary import join_words
from smart_caption_ros.imaging import resize_image
from training.configs.schema import ExperimentConfig
from training.data.feature_formats import check_images
from training.data.feature_inputs import open_stored_features, visual_of_features
from training.data.photograph_inputs import visual_of_images
from training.data.region_batches import open_batches
from training.data.regions import RegionFeatures
from training.engine.ensembles import join_captioners
from training.engine.experiment import parse_record
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, ConfigError, DataError
from training.models.captioner import Visual

BATCH = 16
"""Images that are captioned at once."""


class CheckpointCaptioner:
    """A checkpoint with the search settings of its experiment."""

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: file of a trained captioner, e.g. ``best.safetensors`` of a run.

        Raises:
            CheckpointError: the file is missing or malformed.
        """
        self.path = path
        self.trained = TrainedCaptioner.load(path)
        try:
            self.experiment: ExperimentConfig = parse_record(self.trained.record["experiment"], str(path))
        except (KeyError, ConfigError) as error:
            raise CheckpointError(f"{path} does not say how it was trained ({error})") from None

    @classmethod
    def ensemble(cls, paths: Sequence[Path]) -> "CheckpointCaptioner":
        """Join checkpoints to an ensemble with the search settings of the first.

        Raises:
            CheckpointError: a file is missing or malformed, or the captioners differ in vocabulary or visual tokens.
        """
        joined = cls(paths[0])
        joined.trained = join_captioners({str(path): TrainedCaptioner.load(path) for path in paths})
        joined.experiment = parse_record(joined.trained.record["experiment"], str(paths[0]))
        return joined

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.experiment.name

    def frame(self, image_bgr: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Squash a photograph, (H, W, 3) uint8 BGR, to the frames of the captioner's backbone, which must exist."""
        assert self.trained.backbone is not None
        return resize_image(image_bgr, (self.trained.backbone.image_size,) * 2)

    def visual_of_frames(self, frames_bgr: Sequence[NDArray[np.uint8]]) -> Visual:
        """Compute the captioner's input of frames of :meth:`frame`."""
        assert self.trained.backbone is not None
        return visual_of_images(self.trained.backbone, torch.from_numpy(np.stack(frames_bgr)))

    def stored_features(self, data: Path) -> RegionFeatures:
        """Open the features that a captioner without a backbone was trained on.

        Args:
            data: data folder, which contains them.

        Raises:
            DataError: they are missing or malformed.
        """
        return open_stored_features(self.experiment.features, data)[0]

    @torch.inference_mode()
    def caption(
        self, images: Sequence[str], read_image: Callable[[str], np.ndarray] | None, data: Path
    ) -> dict[str, str]:
        """Caption images.

        Args:
            images: image ids.
            read_image: reads an image, (H, W, 3) uint8 BGR; not needed for a captioner of stored features.
            data: data folder, which contains the experiment's features.

        Returns:
            The sentence of each image.

        Raises:
            DataError: an image or its features are missing or malformed.
        """
        if self.trained.backbone is None:
            features = self.stored_features(data)
            check_images(features, images, f"features of {self.path}")
            batches = open_batches(features, images, self.trained.captioner)
        elif read_image is None:
            raise DataError(f"{self.path} captions photographs; give the folder of the images with --images")
        captions: dict[str, str] = {}
        for start in tqdm(range(0, len(images), BATCH), desc=self.name, unit="batch"):
            names = images[start : start + BATCH]
            if self.trained.backbone is None:
                visual = visual_of_features(batches.read(np.arange(start, start + len(names))))
            else:
                assert read_image is not None
                visual = self.visual_of_frames([self.frame(read_image(name)) for name in names])
            captions.update(zip(names, self._sentences(visual), strict=True))
        return captions

    def _sentences(self, visual: Visual) -> list[str]:
        beam_size, max_words = self.experiment.evaluation.beam_size, self.experiment.data.max_words
        found = self.trained.caption(visual, beam_size, max_words)
        return [join_words(words) for words in self.trained.sentences(found)]
