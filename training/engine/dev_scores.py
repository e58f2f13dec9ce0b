"""Scores of the dev split after an epoch, of all its images or of a subset of them."""

from collections.abc import Mapping
from typing import NamedTuple


class DevScores(NamedTuple):
    """Scores of an epoch, by name.

    Scores of the whole split and of a subset are not comparable: each is compared only with others of its kind.
    """

    whole: Mapping[str, float] | None
    """Of the whole split; None if only the subset was scored."""
    subset: Mapping[str, float] | None = None
    """Of the subset, the same images after every epoch of the run; None without a subset."""
    subset_images: int = 0
    """Number of images of the subset."""

    @property
    def reported(self) -> Mapping[str, float]:
        """Of the whole split if it was scored, else of the subset."""
        scores = self.subset if self.whole is None else self.whole
        assert scores is not None
        return scores

    @property
    def of_every_epoch(self) -> Mapping[str, float]:
        """Of those images that are scored after every epoch of the run."""
        scores = self.whole if self.subset is None else self.subset
        assert scores is not None
        return scores
