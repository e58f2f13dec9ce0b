"""Captions of the dev split after an epoch, and their scores."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from training.configs.schema import EvaluationConfig
from training.data.loading import load_ahead, loading_threads
from training.data.visual_inputs import VisualInputs
from training.engine.distributed import Processes
from training.engine.trained_captioner import TrainedCaptioner
from training.evaluation.metrics.coco import IndexedReferences, metrics_of

_SUBSET = 2
"""Spawn key of the generator that draws the subset; it is independent of those of the training data."""


class DevScores(NamedTuple):
    """Scores of an epoch, by name.

    Scores of the whole split and of a subset are not comparable: each is compared only with others of its kind.
    """

    whole: Mapping[str, float] | None
    """Scores of the whole split; None if only the subset was scored."""
    subset: Mapping[str, float] | None = None
    """Scores of the subset, the same images after every epoch of the run; None without a subset."""
    subset_images: int = 0
    """Number of images of the subset."""

    @property
    def reported(self) -> Mapping[str, float]:
        """Scores of the whole split if it was scored, else of the subset."""
        scores = self.subset if self.whole is None else self.whole
        assert scores is not None
        return scores

    @property
    def of_every_epoch(self) -> Mapping[str, float]:
        """Scores of the images that are scored after every epoch of the run."""
        scores = self.whole if self.subset is None else self.subset
        assert scores is not None
        return scores


class DevEvaluation:
    """Captions and scores the images of the dev split; each process captions some of them."""

    def __init__(
        self,
        images: Sequence[str],
        references: Mapping[str, Sequence[str]],
        settings: EvaluationConfig,
        seed: int,
        processes: Processes,
    ) -> None:
        """
        Args:
            references: for each image the human captions, as words joined by spaces.
            seed: of the experiment; the subset depends on it alone.
        """
        self._images, self._settings, self._processes = images, settings, processes
        self._references = IndexedReferences(references)
        self._subset: NDArray[np.int64] | None = None
        if 0 < settings.subset < len(images):
            random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_SUBSET,)))
            self._subset = np.sort(random.choice(len(images), settings.subset, replace=False))

    def score(self, trained: TrainedCaptioner, inputs: VisualInputs, *, epochs_left: int) -> DevScores:
        """Score the split, or its subset; the result is the same in every process.
        ``epochs_left``: number of epochs of the phase after this one.

        Raises:
            DataError: an image cannot be read.
        """
        processes, subset = self._processes, self._subset
        whole = subset is None or epochs_left < self._settings.whole_split_in_last_epochs
        chosen = np.arange(len(self._images)) if subset is None or whole else subset
        own = chosen[processes.rank :: processes.count]
        with processes.fail_in_all(), torch.inference_mode(), processes.autocast():
            statistics = self._references.statistics(self._captions(trained, inputs, own))
        parts = processes.gather((own, statistics))
        places, rows = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        rows = rows[np.argsort(places)]  # the order of summation, too, is the same for any number of processes
        scores = _scores(rows)
        if subset is None:
            return DevScores(scores)
        return DevScores(scores, _scores(rows[subset]), len(subset)) if whole else DevScores(None, scores, len(subset))

    def _captions(self, trained: TrainedCaptioner, inputs: VisualInputs, images: NDArray[np.int64]) -> dict[str, str]:
        """Search for the captions of images, as words joined by spaces."""
        parts = np.array_split(images, -(-len(images) // self._settings.images_per_batch)) if len(images) else []
        captions: dict[str, str] = {}

        with closing(load_ahead(inputs.dev_batch, parts, loading_threads(self._processes.on_this_machine))) as batches:
            bar = tqdm(parts, desc="dev", unit="batch", leave=False, disable=not self._processes.is_first)
            for part, host_batch in zip(bar, batches, strict=True):
                batch = self._processes.to_device(host_batch)
                found = trained.caption(inputs.visual(batch), attention=False)
                sentences = map(" ".join, trained.words(found))
                captions.update(zip((self._images[image] for image in part), sentences, strict=True))
        return captions


def _scores(statistics: NDArray[np.float64]) -> dict[str, float]:
    return {metric.name: metric.value for metric in metrics_of(statistics)}
