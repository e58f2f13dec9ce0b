"""Guidance and the penalty of repetitions see words, not their pieces."""

import numpy as np
import pytest
import torch

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.detection.detections import ClassScores
from smart_caption_ros.grounding import ObjectsGuide
from training.decoding.beam_search import bias_after, bias_of_next
from training.decoding.pieces import PieceTables

WORDS = (*SPECIAL, "book", "##shelf", "dog", "skate", "##board", "##rs", "a", "~~,", "##s", "table", "##ing")
VOCABULARY = Vocabulary(WORDS, "##", "~~")
BOOK, SHELF, DOG, SKATE, BOARD, RS, A, COMMA, S, TABLE, ING = range(4, 15)
END = VOCABULARY.end_id


@pytest.fixture(scope="module")
def biases():
    scores = ClassScores({"book": 0.9, "skateboard": 0.8, "dog": 0.6}, complete=False)
    return ObjectsGuide().word_biases(scores, VOCABULARY)


def test_a_guide_knows_the_words_of_classes_in_one_piece_and_in_several(biases):
    assert set(np.nonzero(biases.bias[0])[0]) == {BOOK, DOG, SKATE}
    assert biases.pieces.seconds[SKATE].tolist() == [BOARD]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ([A, BOOK, END], [BOOK]),
        ([A, BOOK, SHELF, END], []),
        ([A, BOOK, COMMA, A, DOG, END], [BOOK, DOG]),
        ([A, SKATE, BOARD, S, END], [SKATE]),
        ([A, SKATE, RS, END], []),
        ([A, BOOK, BOOK, END], [BOOK]),
        ([A, SKATE, A, END], []),
        ([BOOK, SHELF, A, BOOK, A, BOOK, END], [BOOK]),
        ([SKATE, BOARD, A, SKATE, BOARD, A, DOG, END], [SKATE, DOG]),
    ],
)
def test_a_caption_is_guided_by_its_words(said, named, biases):
    wanted = sum(float(biases.bias[0, word]) for word in named)
    tables = PieceTables.of(VOCABULARY)
    bias, groups = torch.from_numpy(biases.bias)[:, None], torch.from_numpy(biases.groups)
    gained, before = 0.0, VOCABULARY.begin_id
    for word in said:
        pair = torch.tensor([[before]]), torch.tensor([[word]])
        gained += float(bias_of_next(bias, pair[0], groups, None, 0.0, tables)[0, 0, word])
        bias, before = bias_after(bias, *pair, groups, None, 0.0, tables), word
    assert gained == pytest.approx(wanted)
