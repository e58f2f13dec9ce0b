"""CIDErBtw (Wang, Xu, Wang, Chan, ECCV 2020): CIDEr of a caption against the human captions of similar images.

For the K images that are most similar to the caption's own one, with N_k human captions each::

    CIDErBtw(c) = 1/K sum_k 1/N_k sum_n CIDEr(c, c_n^k)

A low value is a caption that fits its own image and no other. Document frequencies are those of the scored references,
as of the toolkit's CIDEr, so that the two values stand on one scale. The authors find similar images by a trained
image-to-sentence retrieval; here they are given (:mod:`training.evaluation.similar_images`).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from training.evaluation.metrics.cider_d import TextCiderD
from training.evaluation.metrics.metric import Captions, Metric, References, check_same_images, ratio


def cider_btw(candidates: Captions, references: References, similar: Mapping[str, Sequence[str]]) -> Metric:
    """Compute CIDErBtw; lower is better.
    ``similar``: for each image the similar ones, all of them in ``references``. An image without any has no value.

    Returns:
        ``cider_btw``, in [0, 10]; NaN for an image without similar ones.

    Raises:
        ValueError: candidates and references do not name the same images.
    """
    check_same_images(candidates, references)
    pairs = [(row, other) for row, image in enumerate(candidates) for other in similar[image]]
    rows = np.array([row for row, _ in pairs], dtype=np.int64)
    captions = list(candidates.values())
    scores = TextCiderD(references).score([captions[row] for row in rows], [other for _, other in pairs])
    sums, counts = (np.bincount(rows, weights, minlength=len(captions)) for weights in (scores, None))
    per_image = ratio(np.stack([sums, counts], axis=1))
    known = counts > 0
    return Metric("cider_btw", np.stack([np.where(known, per_image, 0.0), known], axis=1), ratio, per_image)
