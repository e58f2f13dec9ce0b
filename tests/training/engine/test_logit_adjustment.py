"""Logits of rarer words are raised by a share of their log frequency."""

import math
from dataclasses import replace

import pytest
import torch

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import TINY_SIZES, TOKEN_WIDTH, tiny_captioner, tiny_captions, tiny_trained, tiny_visual
from training.data.coco_dataset import CocoDataset
from training.data.mixture import Mixture, Source
from training.engine.logit_adjustment import AdjustmentError, adjust_logits, word_counts
from training.engine.trained_captioner import TrainedCaptioner
from training.models.captioner import Captioner
from training.models.families import SINGLE_FAMILIES
from training.models.m2 import M2, M2Config

COUNTS = {"": 10.0, "w4": 30.0, "w5": 5.0, "unheard_of": 100.0}


def logits(captioner: Captioner) -> torch.Tensor:
    with torch.no_grad():
        return captioner.decode_captions(tiny_captions(2, 1, seed=1), captioner.encode(tiny_visual(2, 6, seed=1)))


def small(family: str) -> TrainedCaptioner:
    vocabulary = Vocabulary(tiny_trained().vocabulary.words[:30])
    return replace(tiny_trained(), family=family, captioner=tiny_captioner(family), vocabulary=vocabulary)


@pytest.mark.parametrize("family", SINGLE_FAMILIES)
def test_every_family_adds_the_same_to_the_logit_of_a_word_wherever_it_may_stand(family: str) -> None:
    trained = small(family)
    adjusted = adjust_logits(trained, COUNTS, strength=0.5, end_penalty=0.25)
    added = logits(adjusted.captioner) - logits(trained.captioner)
    expected = torch.zeros(30)
    for index, count in ((4, 30.0), (5, 5.0), (Vocabulary.end_id, 10.0)):
        expected[index] = -0.5 * math.log(count / 45)
    expected[Vocabulary.end_id] -= 0.25
    torch.testing.assert_close(added, expected.expand_as(added), atol=2e-5, rtol=1e-4)
    assert adjusted.record["logit_adjustment"] == {"strength": 0.5, "end_penalty": 0.25}
    assert "logit_adjustment" not in trained.record


def test_a_captioner_is_adjusted_once() -> None:
    adjusted = adjust_logits(small("smart"), COUNTS, strength=0.5, end_penalty=0.0)
    with pytest.raises(AdjustmentError, match="adjusted already"):
        adjust_logits(adjusted, COUNTS, strength=0.5, end_penalty=0.0)


def test_a_captioner_of_pieces_of_words_is_refused() -> None:
    words = small("smart").vocabulary.words
    with pytest.raises(AdjustmentError, match="pieces of words"):
        adjust_logits(replace(small("smart"), vocabulary=Vocabulary(words, "##")), COUNTS, 0.5, 0.0)


def test_a_captioner_whose_words_are_vectors_from_a_file_is_refused() -> None:
    config = M2Config(vocabulary_size=30, token_width=TOKEN_WIDTH, word_vector_width=8, **TINY_SIZES["m2"])
    with pytest.raises(AdjustmentError, match="an output for each word"):
        adjust_logits(replace(small("m2"), captioner=M2(config)), COUNTS, strength=0.5, end_penalty=0.0)
    with pytest.raises(ValueError, match="output_bias"):
        replace(config, output_bias=True)


def test_words_are_counted_as_often_as_an_epoch_has_them_times_the_weight_of_their_source() -> None:
    captions = {"one": ["A cup.", "a cup on a table"], "two": ["a table"], "three": ["never trained on"]}
    dataset = CocoDataset(captions, {}, {"train": ["one", "two"], "dev": ["three"]})
    assert word_counts(dataset) == {"": 3, "a": 4, "cup": 2, "on": 1, "table": 2}
    mixture = Mixture({"x": Source(dataset, repeat=2, weight=0.5), "y": Source(dataset, weight=2.0)}, ["x"])
    assert word_counts(mixture) == {"": 9, "a": 12, "cup": 6, "on": 3, "table": 6}
