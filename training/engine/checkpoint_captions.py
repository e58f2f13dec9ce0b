"""Captions of a checkpoint: of photographs, or of the features that it was trained on."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._pytree import tree_map_only
from tqdm import tqdm

from training.configs.parsing import build_config
from training.configs.schema import ExperimentConfig
from training.data.photographs import ImageReader
from training.data.regions import RegionFeatures
from training.data.stored_features import check_images, open_stored_features, visual_of_stored
from training.data.visual_inputs import visual_of_images
from training.decoding.constrained_search import constrained_beam_search
from training.decoding.constraints import Constraints, constraints_of_file, constraints_of_objects
from training.engine.joining import join_captioners
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, ConfigError, DataError
from training.models.captioner import Visual

BATCH = 16
"""Images that are captioned at once, unless the caller says otherwise."""


class DatasetCaptioner:
    """A checkpoint that captions the images of a data set.

    Methods take ``read_image``, which reads an image, for a captioner with a backbone, and ``data``, the data folder,
    for one of stored features. They raise :class:`DataError` for images or features that are missing or malformed.
    """

    def __init__(self, *paths: Path, device: torch.device | None = None, batch: int = BATCH) -> None:
        """
        Args:
            paths: file of a trained captioner, e.g. ``best.safetensors`` of a run; several become an ensemble with the
                search settings of the first.
            device: of the networks; None for the CPU.

        Raises:
            CheckpointError: a file is missing or malformed, or the captioners differ in vocabulary or visual tokens.
        """
        models = {str(path): TrainedCaptioner.load(path) for path in paths}
        self.path = paths[0]
        self.trained = models[str(self.path)] if len(paths) == 1 else join_captioners(models)
        try:
            experiment = self.trained.record["experiment"]
            self.experiment = build_config(ExperimentConfig, experiment, str(self.path), ignore_unknown_keys=True)
        except (KeyError, ConfigError) as error:
            raise CheckpointError(f"{self.path} does not say how it was trained ({error})") from None
        self._device, self._batch = device, batch
        for network in (self.trained.captioner, self.trained.backbone):
            if network is not None:
                network.to(device)

    def frame(self, image_bgr: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Bring a photograph, (H, W, 3) uint8 BGR, to the frames of the captioner's backbone, which must exist."""
        assert self.trained.backbone is not None
        return self.trained.backbone.spec.preprocessing.apply(image_bgr)

    def visual_of_frames(self, frames_bgr: Sequence[NDArray[np.uint8]]) -> Visual:
        """Compute the captioner's input of frames of :meth:`frame`."""
        assert self.trained.backbone is not None
        return visual_of_images(self.trained.backbone, torch.from_numpy(np.stack(frames_bgr)).to(self._device))

    def stored_features(self, data: Path) -> RegionFeatures:
        """Open the features that a captioner without a backbone was trained on."""
        return open_stored_features(self.experiment.features, data)[0]

    @torch.inference_mode()
    def caption(
        self,
        images: Sequence[str],
        read_image: ImageReader | None,
        data: Path,
        constraints: Constraints | None = None,
        minimum: int = 2,
    ) -> tuple[dict[str, str], int]:
        """Caption images.

        Args:
            constraints: for each image the sets of word ids of which its caption has to contain a word, by constrained
                beam search without penalties of repeated words; None: beam search.
            minimum: how many of an image's constraints its caption satisfies at least.

        Returns:
            The sentence of each image, and how many constraints they satisfy in all.
        """
        captions: dict[str, str] = {}
        satisfied = 0
        for names, visual in self._batches(images, read_image, data):
            if constraints is None:
                words = self.trained.caption(visual, attention=False).words
            else:
                sets = [constraints[name] for name in names]
                found = constrained_beam_search(self.trained.captioner, visual, sets, self.trained.search, minimum)
                words, satisfied = found.words, satisfied + int(found.satisfied[:, 0].sum())
            captions.update(zip(names, self.trained.sentences(words), strict=True))
        return captions, satisfied

    def constraints(self, source: Path, images: Sequence[str], read_image: ImageReader | None) -> Constraints:
        """Read constraints of images from a JSON file, or make them of the objects that a detector finds.

        Args:
            source: file ending in ``.json``, an ONNX detector, or the folder of a bundle with a detector.

        Raises:
            CheckpointError: the captioner says pieces of words, which cannot be constrained.
            DataError: see :func:`constraints_of_file` and :func:`constraints_of_objects`.
        """
        vocabulary = self.trained.vocabulary
        if vocabulary.continuation:
            raise CheckpointError(f"--constraints is for captioners of whole words; {self.path} says pieces of words")
        if source.suffix == ".json":
            return constraints_of_file(source, images, vocabulary)
        if read_image is None:
            raise DataError(f"{source} finds objects in photographs; give the folder of the images with --images")
        return constraints_of_objects(source, images, read_image, vocabulary)

    def _batches(
        self, images: Sequence[str], read_image: ImageReader | None, data: Path
    ) -> Iterator[tuple[Sequence[str], Visual]]:
        """Yield the captioner's input of a few images at a time, with their ids."""
        if self.trained.backbone is None:
            features = self.stored_features(data)
            check_images(features, images, f"features of {self.path}")
        elif read_image is None:
            raise DataError(f"{self.path} captions photographs; give the folder of the images with --images")
        for start in tqdm(range(0, len(images), self._batch), desc=self.experiment.name, unit="batch"):
            names = images[start : start + self._batch]
            if self.trained.backbone is None:
                visual = visual_of_stored(self.trained.captioner, features, names)
                yield names, tree_map_only(torch.Tensor, lambda part: part.to(self._device), visual)
            else:
                assert read_image is not None
                yield names, self.visual_of_frames([self.frame(read_image(name)) for name in names])
