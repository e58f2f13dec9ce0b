"""Truth of captions by exhaustive lists of things: what a caption names and a photograph does not show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from training.data.things import Things
from training.evaluation.metrics.metric import Captions, Metric, ratio

TRUTH = ("captions_with_absent", "named_things_there")
"""Names of the metrics of :func:`truth`."""


@dataclass(frozen=True)
class ShownThings:
    """What photographs show, by their lists of things and their captions."""

    things: Things
    shown: Mapping[str, frozenset[object]]
    """By image id, from :meth:`Things.shown`."""

    @classmethod
    def of(
        cls, things: Things, lists: Mapping[str, Sequence[str]], captions: Mapping[str, Sequence[str]]
    ) -> "ShownThings":
        """Join the lists and the captions of the images that have captions."""
        return cls(things, {image: things.shown(lists[image], said) for image, said in captions.items()})

    def judge(self, image: str, caption: str) -> dict[str, bool]:
        """Return the things that a caption names, and whether the image shows them."""
        return self.things.judge(caption, self.shown[image])


def truth(candidates: Captions, shown: ShownThings) -> list[Metric]:
    """Compute the share of captions that name something absent, and the share of named things that are there.
    ``candidates``: for each image a caption, as written.

    Returns:
        ``captions_with_absent``, lower is better, and ``named_things_there``, NaN for an image whose caption names no
        thing; both in [0, 1].
    """
    judged = [shown.judge(image, caption) for image, caption in candidates.items()]
    named, there = np.array([(len(found), sum(found.values())) for found in judged], float).T
    wrong, ones = (there < named).astype(float), np.ones(len(judged))
    of_captions, of_names = np.stack([wrong, ones], axis=1), np.stack([there, named], axis=1)
    return [
        Metric(TRUTH[0], of_captions, ratio, wrong),
        Metric(TRUTH[1], of_names, ratio, ratio(of_names)),
    ]
