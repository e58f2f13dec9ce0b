"""Captions for the photographs of ``coco_photographs`` that have labels or statements and no people's captions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from recipes.caption_sets.captions_file import CaptionedImage
from recipes.caption_sets.coco_statements import captions_from_statements
from recipes.caption_sets.fitting_captions import FittingCaptions, LabelEvidence
from recipes.caption_sets.fluency import Fluency
from recipes.caption_sets.word_teacher import Example, WordTeacher
from recipes.image_content import DETECTOR, MINIMUM_SCORE
from recipes.rooms.words import without_repetitions
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.detection.errors import DetectorError
from smart_caption_ros.engines import create_engine
from smart_caption_ros.engines.errors import EngineError
from smart_caption_ros.files import replaced_atomically, sha256_of_bytes
from smart_caption_ros.imaging import ImageError, decode_image_bytes, resize_image
from training.data.coco_photographs import IMAGES, CocoPhotographs
from training.data.flickr8k import Flickr8k
from training.data.held_out import excluded_photographs
from training.data.photographs import PhotographArchive
from training.data.tokenizer import tokenize
from training.errors import DataError
from training.evaluation.metrics.chair import Synonyms
from training.vision.backbone import IMAGE_SIZE, Backbone
from training.vision.released_weights import load_backbone

_BATCH = 32
CERTAIN = 0.5
"""Least score of a detection that is certainly right; others are possible."""


def computed_of_photographs(
    photographs: Iterable[tuple[str, bytes]],
    count: int,
    compute: Callable[[NDArray[np.uint8]], NDArray[Any]],
    cache: Path,
    title: str,
) -> Mapping[str, NDArray[Any]]:
    """Compute an array for each photograph, or read it from a cache.

    Args:
        photographs: names and encoded photographs.
        count: number of photographs, for the progress bar.
        compute: (B, 224, 224, 3) uint8 BGR -> (B, ...).
        cache: folder of the files, one for each batch of photographs of equal content.
        title: of the progress bar.

    Raises:
        DataError: a photograph is not an image.
    """
    found: dict[str, NDArray[Any]] = {}
    with tqdm(total=count, desc=title, unit="photograph", mininterval=1) as bar:
        remaining = iter(photographs)
        while batch := list(islice(remaining, _BATCH)):
            path = cache / f"{sha256_of_bytes(b''.join(encoded for _, encoded in batch))[:24]}.npy"
            try:
                values = np.load(path)
            except (OSError, ValueError):
                values = compute(np.stack([_frame(name, encoded) for name, encoded in batch]))
                cache.mkdir(parents=True, exist_ok=True)
                with replaced_atomically(path) as unfinished, unfinished.open("wb") as stream:
                    np.save(stream, values)
            found.update((name, values[row]) for row, (name, _) in enumerate(batch))
            bar.update(len(batch))
    return found


def mean_tokens(backbone: Backbone) -> Callable[[NDArray[np.uint8]], NDArray[np.float32]]:
    """Return a function that computes the mean of the tokens of frames, (B, D) float32."""

    def compute(frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        with torch.inference_mode():
            means: NDArray[np.float32] = backbone(torch.from_numpy(frames)).float().mean(dim=1).numpy()
        return means

    return compute


def object_counts(detector: Detector) -> Callable[[NDArray[np.uint8]], NDArray[np.int16]]:
    """Return a function that counts the certain and the possible objects of each class, (B, classes, 2) int16."""
    places = {name: place for place, name in enumerate(detector.class_names)}

    def compute(frames: NDArray[np.uint8]) -> NDArray[np.int16]:
        counts = np.zeros((len(frames), len(places), 2), np.int16)
        for row, frame in zip(counts, frames, strict=True):
            for found in detector.detect(frame):
                row[places[found.class_name]] += (found.score >= CERTAIN, 1)
        return counts

    return compute


def counts_by_label(counts: NDArray[np.int16], class_names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the numbers of certain and of possible objects, of the classes that have any."""
    return dict(_nonzero(counts, class_names))


def _nonzero(counts: NDArray[np.int16], class_names: Iterable[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    for name, (certain, possible) in zip(class_names, counts.tolist(), strict=True):
        if possible:
            yield name, (certain, possible)


def _frame(name: str, encoded: bytes) -> NDArray[np.uint8]:
    try:
        return resize_image(decode_image_bytes(encoded), (IMAGE_SIZE, IMAGE_SIZE))
    except ImageError as error:
        raise DataError(f"{name}: {error}") from None


BACKBONE = "mobilenetv2_float32.onnx"
"""Released weights from whose features the word teacher learns."""
MAX_CAPTIONS, MAX_FITTING = 5, 3
_FLICKR8K_STEP = 2
"""The word teacher learns from every second photograph of Flickr8k: more add little and take their time."""


def captions_of_labelled(
    data: Path, cache: Path, pool: Sequence[str], fluency: Fluency, max_uses: int
) -> list[CaptionedImage]:
    """Write the captions of the photographs of the train part that people did not caption.

    Args:
        data: folder of the data sets.
        cache: folder for what networks compute of the photographs.
        pool: people's captions of other photographs.
        fluency: tells which sentences read like people's captions.
        max_uses: photographs that may share a caption of the pool.

    Raises:
        BackboneError, DataError: data is missing or malformed.
    """
    dataset = CocoPhotographs(data / "coco_photographs")
    excluded = excluded_photographs("coco_photographs")
    train = {
        image: photograph
        for image, photograph in dataset.photographs.items()
        if photograph.part == "train" and image not in excluded
    }
    synonyms = Synonyms.load(data / "lexicon" / "chair_synonyms.txt")
    teacher, features = _word_teacher(data, cache, dataset, list(train), synonyms)
    wanted = [image for image, photograph in train.items() if not photograph.sentences]
    detector = _detector(data / "detectors" / DETECTOR)
    archive = PhotographArchive(dataset.root / IMAGES)
    counts = computed_of_photographs(
        ((image, archive.read_encoded(image)) for image in wanted),
        len(wanted),
        object_counts(detector),
        cache / "counts",
        "objects",
    )
    fitting = FittingCaptions(pool, synonyms, max_uses)
    found = []
    for image in tqdm(wanted, "captions", unit="photograph", mininterval=1):
        photograph = train[image]
        said = dict.fromkeys((word for text in photograph.statements for word in tokenize(text)), 1.0)
        evidence = LabelEvidence(
            frozenset(photograph.objects),
            {**teacher.confirmed_words(features[image], photograph.objects), **said},
            counts_by_label(counts[image], detector.class_names),
        )
        captions = [
            *captions_from_statements(photograph.statements, fluency, image),
            *fitting.choose(evidence, MAX_FITTING),
        ]
        sentences = without_repetitions(captions, 0.9)[:MAX_CAPTIONS]
        found.append(CaptionedImage(image, sentences, photograph.indoor, photograph.objects))
    return found


def _word_teacher(
    data: Path, cache: Path, dataset: CocoPhotographs, images: Sequence[str], synonyms: Synonyms
) -> tuple[WordTeacher, Mapping[str, NDArray[np.float32]]]:
    """Learn from the photographs with people's captions; also return the features of ``images``."""
    flickr8k = Flickr8k(data / "flickr8k")
    others = flickr8k.split("train")[::_FLICKR8K_STEP]
    sources = [(dataset.root / IMAGES, images), (flickr8k.root / "images_224.zip", others)]
    compute = mean_tokens(load_backbone(data / "backbones" / BACKBONE))
    features = computed_of_photographs(
        _encoded(sources), len(images) + len(others), compute, cache / "features", "features"
    )
    examples = []
    for image in images:
        if image in dataset.captions:
            words = [tokenize(caption) for caption in dataset.captions[image]]
            examples.append(Example(features[image], dataset.photographs[image].objects, words))
    for image in others:
        words = [tokenize(caption) for caption in flickr8k.captions[image]]
        labels = {name for caption in words for name in synonyms.mentions(" ".join(caption))}
        examples.append(Example(features[image], labels, words))
    return WordTeacher(examples), features


def _encoded(sources: Iterable[tuple[Path, Sequence[str]]]) -> Iterator[tuple[str, bytes]]:
    for path, names in sources:
        archive = PhotographArchive(path)
        for name in names:
            yield name, archive.read_encoded(name)


def _detector(path: Path) -> Detector:
    try:
        return Detector(path, create_engine("onnxruntime-cpu", 1), minimum_score=MINIMUM_SCORE)
    except (DetectorError, EngineError) as error:
        raise DataError(str(error)) from None
