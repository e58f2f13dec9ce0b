"""Captions for the photographs of ``coco_photographs`` that have labels or statements and no people's captions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from recipes.caption_sets.captions_file import CaptionedImage
from recipes.caption_sets.coco_statements import captions_from_statements
from recipes.caption_sets.fitting_captions import FittingCaptions, LabelEvidence
from recipes.caption_sets.fluency import Fluency
from recipes.caption_sets.photograph_batches import (
    computed_of_photographs,
    counts_by_label,
    mean_tokens,
    object_counts,
)
from recipes.caption_sets.word_teacher import Example, WordTeacher
from recipes.rooms.phrases import without_repetitions
from recipes.teachers.image_content import DETECTOR, MINIMUM_SCORE
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.detection.errors import DetectorError
from smart_caption_ros.engines import create_engine
from smart_caption_ros.engines.errors import EngineError
from training.data.coco_photographs import IMAGES, CocoPhotographs
from training.data.flickr8k import Flickr8k
from training.data.held_out import excluded_photographs
from training.data.photographs import PhotographArchive
from training.data.tokenizer import tokenize
from training.errors import DataError
from training.evaluation.metrics.chair import Synonyms
from training.vision.released_weights import load_backbone

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
