"""What a change of precision does to captions: Flickr8k's dev split as the captioner graph sees it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime

from export.passes.int8 import Captions
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.data.flickr8k import Flickr8k
from training.data.tokenizer import tokenize
from training.evaluation.metrics.cider_d import TextCiderD
from training.paths import data_folder

_BATCH = 50


@dataclass(frozen=True)
class DevSplit:
    """Visual tokens of the dev photographs, computed once, and what people said of them."""

    vocabulary: Vocabulary
    tokens: np.ndarray
    """(images, N, token_width) float32."""
    images: list[str]
    scorer: TextCiderD

    @classmethod
    def load(cls, vocabulary: Vocabulary, vision: onnx.ModelProto) -> "DevSplit":
        """Read the photographs and run the vision graph on them.

        Raises:
            DataError: the data set is not there.
        """
        dataset = Flickr8k(data_folder() / "flickr8k")
        images = dataset.split("dev")
        session = _session(vision)
        tokens = np.concatenate([
            session.run(["tokens"], {"image_bgr": dataset.read_images(images[start : start + _BATCH])})[0]
            for start in range(0, len(images), _BATCH)
        ])  # fmt: skip

        def tokenised(image: str) -> list[str]:
            return [" ".join(tokenize(caption)) for caption in dataset.captions[image]]

        references = {image: tokenised(image) for image in images}
        scorer = TextCiderD(references, [tokenised(image) for image in dataset.split("train")])
        return cls(vocabulary, tokens, images, scorer)

    def captions(self, graph: onnx.ModelProto, count: int | None = None) -> Iterator[tuple[list[int], float]]:
        """Best caption and its score of the first ``count`` images (default: all), one by one as a robot sees them."""
        session = _session(graph)
        mask = np.ones((1, self.tokens.shape[1]), dtype=bool)
        for tokens in self.tokens[:count]:
            words, scores = session.run(["words", "scores"], {"tokens": tokens[None], "token_mask": mask})
            # Padding says how long the search took, not what was said.
            yield [word for word in words[0, 0].tolist() if word != self.vocabulary.padding_id], float(scores[0, 0])

    def cider_d(self, captions: Captions) -> float:
        """Of captions of all images, with our own tokeniser."""
        said = {
            image: " ".join(self.vocabulary.decode(ids)) for image, (ids, _) in zip(self.images, captions, strict=True)
        }
        return self.scorer.metric(said).value


def _session(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
