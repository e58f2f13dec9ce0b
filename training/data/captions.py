"""Captions as padded word ids of a vocabulary, grouped by image."""

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.data.tokenized_captions import TokenizedCaptions


class EncodedCaptions:
    """Captions as the begin token, the ids of the words and the end token.

    A caption longer than ``max_words``, end token included, is cut and has no end token, so that no model is trained
    to end in the middle of a phrase. Captions are encoded when they are read, so an image takes no memory.
    """

    def __init__(self, captions: TokenizedCaptions, vocabulary: Vocabulary, max_words: int) -> None:
        """
        Args:
            captions: of the images.
            vocabulary: other words have its unknown id.
            max_words: longest caption, end token included.
        """
        self._captions, self._max_words = captions, max_words
        self._ids = np.array(vocabulary.encode(captions.words), np.int64)

    def __len__(self) -> int:
        return len(self._captions)

    def read(self, images: NDArray[np.integer]) -> NDArray[np.int64]:
        """Read the captions of B images.

        Args:
            images: (B,) indices into the captions.

        Returns:
            (B, G, T), G of the image with most captions, T of the longest caption; missing captions are padding.
        """
        source = self._captions
        images = source.images[images]
        first, end = source.image_starts[images], source.image_starts[images + 1]
        places = first[:, None] + np.arange((end - first).max())
        real = places < end[:, None]
        places = np.where(real, places, 0)
        starts = source.caption_starts[places]
        lengths = source.caption_starts[places + 1] - starts
        steps = np.arange(min(int(lengths[real].max()) + 1, self._max_words))
        padded = np.full((*places.shape, 1 + len(steps)), Vocabulary.padding_id, np.int64)
        padded[..., 0][real] = Vocabulary.begin_id
        is_word = real[..., None] & (steps < lengths[..., None])
        padded[..., 1:][is_word] = self._ids[source.ids[(starts[..., None] + steps)[is_word]]]
        padded[..., 1:][real[..., None] & (steps == lengths[..., None])] = Vocabulary.end_id
        return padded
