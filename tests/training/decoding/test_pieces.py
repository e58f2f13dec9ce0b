"""Guidance and the penalty of repetitions see words, not their pieces."""

import numpy as np
import pytest
import torch

from smart_caption_ros.captioning.guidance import WordBiases
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.detection.detections import ClassScores
from smart_caption_ros.grounding import ObjectsGuide
from smart_caption_ros.grounding.class_words import class_pieces
from training.decoding.beam_search import bias_after, bias_of_next
from training.decoding.pieces import PieceTables
from training.decoding.repeats import same_words

WORDS = (*SPECIAL, "book", "##shelf", "dog", "skate", "##board", "##rs", "a", "~~,", "##s", "table", "##ing")
VOCABULARY = Vocabulary(WORDS, "##", "~~")
BOOK, SHELF, DOG, SKATE, BOARD, RS, A, COMMA, S, TABLE, ING = range(4, 15)
END = VOCABULARY.end_id


@pytest.fixture(scope="module")
def biases() -> WordBiases:
    scores = ClassScores({"book": 0.9, "skateboard": 0.8, "dog": 0.6}, complete=False)
    return ObjectsGuide().word_biases(scores, VOCABULARY)


def test_a_guide_knows_the_words_of_classes_in_one_piece_and_in_several(biases: WordBiases) -> None:
    assert set(np.nonzero(biases.bias[0])[0]) == {BOOK, DOG, SKATE}
    assert biases.pieces is not None
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
def test_a_caption_is_guided_by_its_words(said: list[int], named: list[int], biases: WordBiases) -> None:
    wanted = sum(float(biases.bias[0, word]) for word in named)
    tables = PieceTables.of(VOCABULARY)
    assert tables is not None
    bias, groups = torch.from_numpy(biases.bias)[:, None], torch.from_numpy(biases.groups)
    gained, before = 0.0, VOCABULARY.begin_id
    for word in said:
        pair = torch.tensor([[before]]), torch.tensor([[word]])
        gained += float(bias_of_next(bias, pair[0], groups, None, 0.0, tables)[0, 0, word])
        bias, before = bias_after(bias, *pair, groups, None, 0.0, tables), word
    assert gained == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("said", "repeated"),
    [
        ([BOOK, A, BOOK, A], 1),
        ([BOOK, SHELF, A, BOOK, A], 0),
        ([BOOK, A, BOOK, SHELF, A], 0),
        ([BOOK, A, TABLE, A, A], 0),
        ([BOOK, BOOK, BOOK, A], 2),
        ([BOOK, BOOK, SHELF, A], 0),
    ],
)
def test_the_penalty_of_repetitions_is_for_words_that_are_the_same_to_their_end(said: list[int], repeated: int) -> None:
    tables, same, penalty = PieceTables.of(VOCABULARY), same_words(VOCABULARY), 3.0
    assert tables is not None
    bias, lost, before = torch.zeros(1, 1, len(VOCABULARY)), 0.0, VOCABULARY.begin_id
    for word in said:
        pair = torch.tensor([[before]]), torch.tensor([[word]])
        lost -= float(bias_of_next(bias, pair[0], None, same, penalty, tables)[0, 0, word])
        bias, before = bias_after(bias, *pair, None, same, penalty, tables), word
    assert lost == repeated * penalty


def test_a_vocabulary_of_whole_words_has_no_pieces() -> None:
    assert class_pieces(Vocabulary((*SPECIAL, "book", "dog"))) is None
