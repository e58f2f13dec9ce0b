"""Effect of a change of precision on captions, measured on Flickr8k's dev split."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime

from export.passes.int8 import Captions
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.data.flickr8k import Flickr8k
from training.data.tokenizer import tokenize
from training.evaluation.metrics.cider_d import TextCiderD
from training.paths import data_folder

_BATCH = 50


def find_dev_split() -> Flickr8k:
    """Open the data set.

    Raises:
        DataError: it is missing.
    """
    return Flickr8k(data_folder() / "flickr8k")


@dataclass(frozen=True)
class DevSplit:
    """Inputs of a captioner graph for the dev photographs, computed once, and their reference captions."""

    vocabulary: Vocabulary
    inputs: dict[str, np.ndarray]
    """By name; the images are the first axis."""
    images: list[str]
    scorer: TextCiderD

    @classmethod
    def load(
        cls,
        vocabulary: Vocabulary,
        vision: onnx.ModelProto,
        preprocessing: Preprocessing,
        inputs_of: Callable[[np.ndarray], dict[str, np.ndarray]],
    ) -> "DevSplit":
        """Read the photographs and run the vision graph on them.

        Args:
            vocabulary: of the captioner.
            vision: the vision graph.
            preprocessing: of its frames.
            inputs_of: the inputs of the captioner graph for tokens (B, N, token_width).

        Raises:
            DataError: the data set is missing.
        """
        dataset = find_dev_split()
        images = dataset.split("dev")
        session = _session(vision)

        def tokens_of(names: list[str]) -> np.ndarray:
            found: np.ndarray = session.run(["tokens"], {"image_bgr": dataset.read_images(names, preprocessing)})[0]
            return found

        tokens = np.concatenate([
            tokens_of(images[start : start + _BATCH]) for start in range(0, len(images), _BATCH)
        ])  # fmt: skip

        def tokenised(image: str) -> list[str]:
            return [" ".join(tokenize(caption)) for caption in dataset.captions[image]]

        references = {image: tokenised(image) for image in images}
        scorer = TextCiderD(references, [tokenised(image) for image in dataset.split("train")])
        return cls(vocabulary, inputs_of(tokens), images, scorer)

    def captions(self, graph: onnx.ModelProto, count: int | None = None) -> Iterator[tuple[list[int], float]]:
        """Decode the best caption of the first ``count`` images (default: all) and its score, one image at a time as
        a robot does.
        """
        session = _session(graph)
        for place in range(len(self.images[:count])):
            inputs = {name: values[place : place + 1] for name, values in self.inputs.items()}
            words, scores = session.run(["words", "scores"], inputs)
            # The number of padding words depends on when the search ended, not on the caption.
            yield [word for word in words[0, 0].tolist() if word != self.vocabulary.padding_id], float(scores[0, 0])

    def cider_d(self, captions: Captions) -> float:
        """Compute CIDEr-D of captions of all images, with this project's tokeniser."""
        said = {
            image: " ".join(self.vocabulary.decode(ids)) for image, (ids, _) in zip(self.images, captions, strict=True)
        }
        return self.scorer.metric(said).value


def _session(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
