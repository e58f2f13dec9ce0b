"""Constraints of constrained beam search, read from a file or made of the objects that a detector finds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.grounding.class_words import ClassWords
from training.data.inflection import plural
from training.data.json_files import read_json_object
from training.data.photographs import ImageReader
from training.errors import DataError

MOST_CONSTRAINTS = 3
"""Largest number of constraints of an image: the search has 2 to the power of it states (nocaps, ICCV 2019)."""

Constraints = Mapping[str, Sequence[frozenset[int]]]
"""For each image its constraints: sets of word ids, one of which satisfies the constraint."""


def word_ids(vocabulary: Vocabulary, words: Iterable[str]) -> frozenset[int]:
    """Look up words and their plurals.
    ``words``: in the singular; a name of several words has no id and is left out.
    """
    forms = [form for word in words for form in (word.lower(), plural(word.lower()))]
    return frozenset(index for index in vocabulary.encode(forms) if index >= len(SPECIAL))


def constraints_of_file(path: Path, images: Sequence[str], vocabulary: Vocabulary) -> Constraints:
    """Read constraints from a JSON object: ``{"42": ["dog", ["ball", "football"]]}``.

    Args:
        path: the file; by image id up to three constraints: a word, or words one of which satisfies the constraint, in
            the singular.
        images: image ids; those that the file lacks have no constraints.

    Raises:
        DataError: the file is missing or malformed, names no image of ``images``, or has a constraint whose words are
            not in the vocabulary.
    """
    document = read_json_object(path, "an object with a list of constraints for each image id")
    if not document.keys() & set(images):
        raise DataError(f"{path}: none of its images is among those that are captioned")
    constraints: dict[str, list[frozenset[int]]] = {image: [] for image in images}
    for image in document.keys() & constraints.keys():
        listed = document[image]
        if not isinstance(listed, list) or len(listed) > MOST_CONSTRAINTS:
            raise DataError(f"{path}: image {image}: expected a list of up to {MOST_CONSTRAINTS} constraints")
        for entry in listed:
            words = [entry] if isinstance(entry, str) else entry
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                raise DataError(f"{path}: image {image}: a constraint is a word or a list of words, not {entry!r}")
            if not (found := word_ids(vocabulary, words)):
                raise DataError(f"{path}: image {image}: the captioner's vocabulary has none of {', '.join(words)}")
            constraints[image].append(found)
    return constraints


def constraints_of_objects(
    detector: Path, images: Iterable[str], read_image: ImageReader, vocabulary: Vocabulary
) -> Constraints:
    """Constrain the captions of images to name the objects that a detector finds in them.

    The classes are the three with the highest scores that the vocabulary has words for: the class's name, and those of
    :class:`ClassWords`.

    Args:
        detector: an ONNX file (docs/objects.md), or the folder of a bundle with a detector.

    Raises:
        BundleError: the bundle is missing or wrong.
        DataError: the bundle has no detector, or an image cannot be read.
        DetectorError: the ONNX file is missing, or its layout is unknown.
        EngineError: no engine can run the detector.
    """
    detect = _detect_with(detector)
    words_of: dict[str, set[str]] = {}
    for word, names in ClassWords.load().classes_of.items():
        for name in names:
            words_of.setdefault(name, set()).add(word)
    constraints: dict[str, list[frozenset[int]]] = {}
    for image in images:
        found = dict.fromkeys(normalise(detected.class_name) for detected in detect(read_image(image)))
        ids = (word_ids(vocabulary, {name, *words_of.get(name, ())}) for name in found)
        constraints[image] = [words for words in ids if words][:MOST_CONSTRAINTS]
    return constraints


def _detect_with(path: Path) -> Callable[[np.ndarray], Sequence[DetectedObject]]:
    if path.suffix == ".onnx":
        return Detector.from_onnx(path).detect
    captioner = Captioner.from_bundle(path)
    if captioner.detector is None:
        raise DataError(f"{path}: this bundle has no detector, which could find the objects that captions name")
    return lambda image: captioner.caption(image).objects
