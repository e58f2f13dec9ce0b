"""CIDErBtw of the training captions, and the weights that follow from it (Wang, Xu, Wang, Chan, ECCV 2020).

Captions of an image that would fit similar images as well get a smaller weight in cross-entropy and in the reference
part of the CIDEr reward. With the CIDErBtw b_n of the N captions of an image and a strength s:

    w_n = (1 - s b_n / max b) / (1 / N sum over m of (1 - s b_m / max b))

The paper has lambda - alpha b_n / max b with lambda = 1.5 and alpha = 0.5, which is s = 1/3 up to a factor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.data.tokenized_captions import TokenizedCaptions
from training.evaluation.metrics.cider_d import TextCiderD

_NONE = -1
"""Place of a similar image that there is not."""
_IMAGES_AT_A_TIME = 1000
"""Images whose captions are compared at a time: bounds the memory."""


@dataclass(frozen=True)
class Distinctiveness:
    """How the captions of the training images differ from those of similar images."""

    similar: NDArray[np.int64]
    """(images, K) the most similar images of each image, the most similar first; -1 where there are fewer."""
    cider_btw: NDArray[np.float32]
    """(images, G) CIDErBtw of each caption, in [0, 10]; 0 for padding and for images without similar ones."""
    counts: NDArray[np.int64]
    """(images,) number of captions."""

    @classmethod
    def of_captions(cls, words: TokenizedCaptions, similar: Sequence[Sequence[int]]) -> "Distinctiveness":
        """Compute the CIDErBtw of all captions; document frequencies are those of these captions.

        Args:
            words: captions of the images.
            similar: for each image the similar ones, by their places in ``words``.
        """
        texts = {str(image): [" ".join(caption) for caption in captions] for image, captions in enumerate(words)}
        scorer = TextCiderD(texts)
        counts = np.array([len(captions) for captions in texts.values()])
        cider_btw = np.zeros((len(counts), counts.max()), np.float32)
        for start in range(0, len(counts), _IMAGES_AT_A_TIME):
            own = range(start, min(start + _IMAGES_AT_A_TIME, len(counts)))
            compared = [(image, place, other) for image in own for place in range(counts[image])
                        for other in similar[image]]  # fmt: skip
            if compared:
                images, places, _ = np.array(compared).T
                scores = scorer.score(
                    [texts[str(image)][place] for image, place, _ in compared], [str(other) for *_, other in compared]
                )
                others = np.array([len(each) for each in similar])[images]
                np.add.at(cider_btw, (images, places), (scores / others).astype(np.float32))
        padded = np.full((len(counts), max(map(len, similar), default=0)), _NONE, np.int64)
        for row, places_of_similar in zip(padded, similar, strict=True):
            row[: len(places_of_similar)] = places_of_similar
        return cls(padded, cider_btw, counts)

    def weights(self, strength: float) -> NDArray[np.float32]:
        """Compute the weights of the captions, (images, G) float32; their mean over an image's captions is 1.

        Args:
            strength: s, in [0, 1). Padding has a weight, too, which means nothing.
        """
        greatest = self.cider_btw.max(axis=1, keepdims=True)
        raw = 1 - strength * np.divide(self.cider_btw, greatest, out=np.zeros_like(self.cider_btw), where=greatest > 0)
        real = np.arange(raw.shape[1]) < self.counts[:, None]
        means = (raw * real).sum(axis=1, keepdims=True) / self.counts[:, None]
        return (raw / means).astype(np.float32)
