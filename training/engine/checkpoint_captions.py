"""What a trained captioner says before it is a bundle: from photographs, or from the features it was trained on."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from smart_caption_ros.captioning.vocabulary import join_words
from smart_caption_ros.imaging import squash
from training.configs.schema import ExperimentConfig, parse_config
from training.data.feature_formats import check_images
from training.data.visual_inputs import VisualBatch, open_stored_features, read_batch
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, ConfigError, DataError
from training.vision.backbone import IMAGE_SIZE

BATCH = 16


class CheckpointCaptioner:
    """A checkpoint with the search of its experiment: beam size and longest caption."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            CheckpointError: the file is missing or malformed.
        """
        self.path = path
        self.trained = TrainedCaptioner.load(path)
        try:
            self.experiment: ExperimentConfig = parse_config(self.trained.record["experiment"], str(path))
        except (KeyError, ConfigError) as error:
            raise CheckpointError(f"{path} does not say how it was trained ({error})") from None

    @property
    def name(self) -> str:
        """Of the experiment."""
        return self.experiment.name

    def caption(
        self, images: Sequence[str], read_image: Callable[[str], np.ndarray] | None, data: Path
    ) -> dict[str, str]:
        """The sentence for each image.

        Args:
            images: ids.
            read_image: (H, W, 3) uint8 BGR of an image; not needed for a captioner of stored features.
            data: folder that the experiment's features are below.

        Raises:
            DataError: an image or its features are missing or malformed.
        """
        if self.trained.backbone is None:
            features, _ = open_stored_features(self.experiment.features, data)
            check_images(features, images, f"features of {self.path}")
        elif read_image is None:
            raise DataError(f"{self.path} captions photographs; give the folder of the images with --images")
        captions: dict[str, str] = {}
        for start in tqdm(range(0, len(images), BATCH), desc=self.name, unit="batch"):
            names = images[start : start + BATCH]
            if self.trained.backbone is None:
                batch = read_batch(features, names)
            else:
                assert read_image is not None
                frames = [squash(read_image(name), (IMAGE_SIZE, IMAGE_SIZE)) for name in names]
                batch = VisualBatch(torch.from_numpy(np.stack(frames)))
            captions.update(zip(names, self._sentences(batch), strict=True))
        return captions

    @torch.inference_mode()
    def _sentences(self, batch: VisualBatch) -> list[str]:
        tokens = batch.values if self.trained.backbone is None else self.trained.backbone(batch.values)
        beam_size, max_words = self.experiment.evaluation.beam_size, self.experiment.data.max_words
        found = self.trained.caption_tokens(tokens, beam_size, max_words, batch.mask)
        return [join_words(words) for words in self.trained.sentences(found)]
