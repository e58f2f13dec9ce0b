"""Photographs that an export is checked on, and what a change of precision does to their captions.

They are those of a folder (``--calibration``), of the dev split of the run's own data, or frames that ship.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from tqdm import tqdm

from export.bundle import ExportError
from export.passes.int8 import Captions
from smart_caption_ros.captioning import default_bundle_path
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.imaging import ImageError, read_image
from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.configs.parsing import build_config
from training.configs.schema import DataConfig
from training.data.caption_dataset import CaptionDataset
from training.data.datasets import open_dataset
from training.data.feature_extraction import SUFFIXES
from training.data.tokenizer import tokenize
from training.errors import ConfigError, DataError
from training.evaluation.metrics.cider_d import TextCiderD
from training.paths import data_folder

_BATCH = 50


@dataclass(frozen=True)
class Photographs:
    """Photographs that an export is checked on."""

    description: str
    names: Sequence[str]
    """File paths, or image ids of the data set."""
    dataset: CaptionDataset | None = None
    """Has the photographs and their captions; None where they are files."""

    @classmethod
    def find(cls, folder: Path | None, record: Mapping[str, Any]) -> "Photographs":
        """Find the photographs of an export.

        Args:
            folder: of image files; None: the run's dev split, or frames that ship where its data is missing.
            record: of the trained captioner.

        Raises:
            ExportError: the folder has no photographs.
        """
        if folder is not None:
            files = sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
            if not files:
                raise ExportError(f"--calibration: {folder} has no photographs ({', '.join(SUFFIXES)})")
            return cls(f"photographs of {folder}", files)
        try:
            config = build_config(DataConfig, record["experiment"]["data"], "record", ignore_unknown_keys=True)
            dataset = open_dataset(config, data_folder())
            names = dataset.split("dev")
            dataset.check_photographs(names)
        except (ConfigError, DataError, ValueError):
            shipped = default_bundle_path().parents[1] / "sequences"
            return cls("frames that ship", sorted(str(path) for path in shipped.rglob("*.jpg")))
        return cls("dev photographs", names, dataset)

    def read(self, count: int) -> list[np.ndarray]:
        """Read the first photographs, (H, W, 3) uint8 BGR each.

        Raises:
            ExportError: a file is no image.
            DataError: a photograph of the data set is missing or broken.
        """
        names = list(self.names[:count])
        return list(self.dataset.read_images(names)) if self.dataset else [_read(name) for name in names]

    def frames(self, names: Sequence[str], preprocessing: Preprocessing) -> np.ndarray:
        """Read photographs as frames of a vision graph, (n, height, width, 3) uint8; errors as :meth:`read`."""
        if self.dataset is not None:
            return self.dataset.read_images(list(names), preprocessing)
        return np.stack([preprocessing.apply(_read(name)) for name in names])


def _read(path: str) -> np.ndarray:
    try:
        return read_image(Path(path))
    except ImageError as error:
        raise ExportError(f"{path}: {error}") from None


@dataclass(frozen=True)
class Calibration:
    """Inputs of a captioner graph for photographs, computed once, and their reference captions."""

    vocabulary: Vocabulary
    inputs: dict[str, np.ndarray]
    """By name; the images are the first axis."""
    images: Sequence[str]
    scorer: TextCiderD | None
    """None where the photographs have no captions: then only changes of the captions count."""

    @classmethod
    def load(
        cls,
        vocabulary: Vocabulary,
        vision: onnx.ModelProto,
        preprocessing: Preprocessing,
        inputs_of: Callable[[np.ndarray], dict[str, np.ndarray]],
        photographs: Photographs,
    ) -> "Calibration":
        """Read the photographs and run the vision graph on them.

        Args:
            vocabulary: of the captioner.
            vision: the vision graph.
            preprocessing: of its frames.
            inputs_of: the inputs of the captioner graph for tokens (B, N, token_width).
            photographs: to calibrate on.

        Raises:
            ExportError, DataError: a photograph is missing or broken.
        """
        images, session = photographs.names, _session(vision)
        tokens = [
            session.run(["tokens"], {"image_bgr": photographs.frames(images[start : start + _BATCH], preprocessing)})[0]
            for start in tqdm(range(0, len(images), _BATCH), desc="visual tokens", unit="batch")
        ]
        scorer, dataset = None, photographs.dataset
        if dataset is not None:
            captions = dataset.captions

            def tokenised(image: str) -> list[str]:
                return [" ".join(tokenize(caption)) for caption in captions[image]]

            references = {image: tokenised(image) for image in images}
            scorer = TextCiderD(references, [tokenised(image) for image in dataset.split("train")])
        return cls(vocabulary, inputs_of(np.concatenate(tokens)), images, scorer)

    def captions(self, graph: onnx.ModelProto, count: int | None = None) -> Iterator[tuple[list[int], float]]:
        """Decode the best caption of the first ``count`` images (default: all) and its score, one image at a time as
        a robot does.
        """
        session = _session(graph)
        for place in tqdm(range(len(self.images[:count])), desc="captions", unit="image", leave=False):
            inputs = {name: values[place : place + 1] for name, values in self.inputs.items()}
            words, scores = session.run(["words", "scores"], inputs)
            # The number of padding words depends on when the search ended, not on the caption.
            yield [word for word in words[0, 0].tolist() if word != self.vocabulary.padding_id], float(scores[0, 0])

    def cider_d(self, captions: Captions) -> float:
        """Compute CIDEr-D of captions of all images, with this project's tokeniser; 0 without reference captions."""
        if self.scorer is None:
            return 0.0
        said = {
            image: " ".join(self.vocabulary.decode(ids)) for image, (ids, _) in zip(self.images, captions, strict=True)
        }
        return self.scorer.metric(said).value


def _session(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
