"""Caption photographs by a trained captioner whose words are guided by what people say is in them.

A captioner alone repeats its errors when it learns from its own captions. Here the search raises the words for objects
that are known to be in the photograph, lowers those for objects that are known not to be there, and raises the words
of people's statements about it: a soft form of constrained beam search (Anderson et al. 2017, Guided Open Vocabulary
Image Captioning with Constrained Beam Search; Anderson et al. 2018, Partially-Supervised Image Captioning, learn from
what it finds). Only captions all of whose decided nouns are known to be true are kept.

FOLDER/coco_photographs/    photographs that people labelled and did not caption; images_256.zip is a link to the data
FOLDER/rooms/               photographs of rooms, resized to 224 x 224
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from recipes.caption_sets.captions_file import (
    CaptionedImage,
    link_archive,
    with_few_uses,
    write_archive,
    write_captions,
)
from recipes.caption_sets.dataset import MAX_USES, Report
from recipes.noun_evidence import ALL_ROOMS, LABELLED
from recipes.rooms.photographs import COCO, Photograph, RoomsData, decode_photograph
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.imaging import resize_image
from training.data.coco import read_captions
from training.data.coco_photographs import CocoPhotographs
from training.data.held_out import excluded_photographs
from training.data.inflection import singular
from training.data.noun_evidence import NounEvidence, read_noun_evidence
from training.data.photograph_inputs import visual_of_images
from training.data.tokenizer import tokenize
from training.decoding.beam_search import SearchSettings, WordGuide, beam_search
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, DataError

BEAMS = 5
SHOWN_BIAS, SAID_BIAS, ABSENT_BIAS = 2.0, 1.5, -3.0
"""Added to the log probabilities of words for objects that are there, of other words of people's statements, and of
words for objects that are not there."""
_PEOPLE = frozenset({
    "adult", "baby", "boy", "child", "couple", "girl", "group", "guy", "kid", "lady", "man", "people", "person",
    "woman",
})  # fmt: skip
"""Nouns of people, in the singular; where the evidence does not decide them, as in rooms, no caption has them."""
_IMAGES_AT_A_TIME = 20


@dataclass(frozen=True)
class KnownPhotograph:
    """What is known of a photograph before it is captioned."""

    image: str
    """Name of its file in the data set that is written."""
    indoor: bool
    evidence: NounEvidence
    statements: Sequence[str] = ()
    """People's sentences about it."""


class GuidedCaptioner:
    """A trained captioner, and which words of its vocabulary name objects."""

    def __init__(self, trained: TrainedCaptioner) -> None:
        """
        Raises:
            CheckpointError: the captioner takes no frames, or says pieces of words.
        """
        if trained.backbone is None or trained.vocabulary.continuation:
            raise CheckpointError("guided captions need a captioner of frames that says whole words")
        from spacy.lang.en.stop_words import STOP_WORDS  # takes seconds to load

        self._function_words = STOP_WORDS
        self._trained, self.image_size = trained, trained.backbone.image_size
        self._backbone = trained.backbone
        vocabulary: Vocabulary = trained.vocabulary
        self._singulars = ["" if index < len(SPECIAL) else singular(w) for index, w in enumerate(vocabulary.words)]

    def captions(self, frames: NDArray[np.uint8], known: Sequence[KnownPhotograph]) -> Iterator[CaptionedImage]:
        """Caption (B, size, size, 3) uint8 BGR frames; one that gets no true caption has no sentence."""
        biases = [self._bias(each) for each in known]
        guide = WordGuide(
            torch.from_numpy(np.stack([bias for bias, _ in biases])),
            torch.from_numpy(np.stack([groups for _, groups in biases])),
        )
        max_words = int(self._trained.record["experiment"]["data"]["max_words"])
        settings = SearchSettings(BEAMS, max_words, stop="all", attention=False, repeats=self._trained.repeats)
        with torch.inference_mode():
            visual = visual_of_images(self._backbone, torch.from_numpy(frames))
            found = beam_search(self._trained.captioner, visual, settings, guide)
        for each, beams in zip(known, found.words.tolist(), strict=True):
            captions = (self._trained.vocabulary.decode(ids) for ids in beams)
            best = next((words for words in captions if _is_true(words, each.evidence)), None)
            yield CaptionedImage(each.image, [" ".join(best)] if best else [], each.indoor)

    def _bias(self, known: KnownPhotograph) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Return bias and group of each word."""
        decided = known.evidence.decided
        numbers: dict[str, int] = {}
        said = {singular(word) for text in known.statements for word in tokenize(text) if word.isalnum()}
        said -= self._function_words
        bias, groups = np.zeros(len(self._singulars), np.float32), np.zeros(len(self._singulars), np.int32)
        for word, noun in enumerate(self._singulars):
            thing = decided.object_of.get(noun)
            if not noun or noun in decided.background or noun in known.evidence.possible:
                continue
            if noun in known.evidence.shown:
                bias[word] = SHOWN_BIAS
            elif thing is not None or noun in _PEOPLE:
                bias[word] = ABSENT_BIAS
            elif noun in said:
                bias[word] = SAID_BIAS
            if bias[word]:
                groups[word] = numbers.setdefault(thing or noun, len(numbers) + 1)
        return bias, groups


def _is_true(caption: Sequence[str], evidence: NounEvidence) -> bool:
    """Return whether a caption names objects, all of which are known to be there."""
    decided = evidence.decided
    nouns = {singular(word) for word in caption} & (decided.object_of.keys() | _PEOPLE)
    return bool(nouns - decided.background) and nouns <= evidence.shown | decided.background


def make_guided_captions(
    checkpoint: Path, data: Path, evidence: Path, rooms: Path, output: Path, max_uses: int = MAX_USES
) -> Report:
    """Write both data sets.

    Args:
        checkpoint: of the captioner.
        data: folder of the data sets.
        evidence: made by ``python -m training.noun_evidence``.
        rooms: made by ``python -m recipes.rooms``; its dev split is left out.
        output: folder to write; existing data sets are replaced.
        max_uses: photographs of a set that may share a sentence.

    Raises:
        CheckpointError: the checkpoint is missing, malformed, or takes no frames.
        DataError: data is missing or malformed.
        OSError: a file cannot be written.
    """
    for folder, command in ((evidence, "training.noun_evidence"), (rooms, "recipes.rooms")):
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder; make it with python -m {command} -o {folder}")
    captioner = GuidedCaptioner(TrainedCaptioner.load(checkpoint))
    labelled = with_few_uses(_labelled(captioner, data, evidence), max_uses)
    link_archive(output / LABELLED, data / LABELLED / "images_256.zip")
    write_captions(output / LABELLED, labelled)
    dataset = RoomsData.open(data)
    described = with_few_uses(_rooms(captioner, dataset, evidence, rooms), max_uses)
    captioned = {each.image for each in described}
    chosen = [photograph for photograph in dataset.photographs if _file_of(photograph) in captioned]
    encoded = ((_file_of(photograph), content) for photograph, content in dataset.encoded(chosen))
    write_archive(output / ALL_ROOMS, encoded)
    write_captions(output / ALL_ROOMS, described)
    return Report({LABELLED: labelled, ALL_ROOMS: described})


def _labelled(captioner: GuidedCaptioner, data: Path, evidence: Path) -> Iterator[CaptionedImage]:
    """Caption the photographs of the train part that people did not caption."""
    dataset = CocoPhotographs(data / LABELLED)
    known_nouns, excluded = read_noun_evidence(evidence / f"{LABELLED}.json"), excluded_photographs(LABELLED)
    known = [
        KnownPhotograph(image, photograph.indoor, known_nouns[image], photograph.statements)
        for image, photograph in dataset.photographs.items()
        if image in known_nouns and not photograph.sentences and image not in excluded
    ]
    return _in_batches(captioner, known, lambda names: dataset.read_images(names, captioner.image_size))


def _rooms(captioner: GuidedCaptioner, dataset: RoomsData, evidence: Path, rooms: Path) -> Iterator[CaptionedImage]:
    """Caption the rooms that are not in the dev split."""
    known_nouns = read_noun_evidence(evidence / f"{ALL_ROOMS}.json")
    dev = read_captions(rooms / "captions_dev.json").captions.keys()
    photographs = {
        _file_of(photograph): photograph
        for photograph in dataset.photographs
        if photograph.id in known_nouns and photograph.id not in dev and photograph.origin != COCO
    }
    known = [KnownPhotograph(file, True, known_nouns[photograph.id]) for file, photograph in photographs.items()]

    def read(names: Sequence[str]) -> NDArray[np.uint8]:
        size = captioner.image_size, captioner.image_size
        wanted = dataset.encoded([photographs[name] for name in names])
        return np.stack([resize_image(decode_photograph(photograph, content), size) for photograph, content in wanted])

    return _in_batches(captioner, known, read)


def _file_of(photograph: Photograph) -> str:
    return f"{photograph.id}.jpg"


def _in_batches(
    captioner: GuidedCaptioner, known: Sequence[KnownPhotograph], read: Callable[[list[str]], NDArray[np.uint8]]
) -> Iterator[CaptionedImage]:
    with tqdm(desc="captions", total=len(known), unit="photograph", mininterval=1) as bar:
        for first in range(0, len(known), _IMAGES_AT_A_TIME):
            batch = known[first : first + _IMAGES_AT_A_TIME]
            yield from captioner.captions(read([each.image for each in batch]), batch)
            bar.update(len(batch))
