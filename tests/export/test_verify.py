"""Which captions of a bundle count as torch's before it is kept."""

import numpy as np
import pytest
import torch

from export.verify import compare, score_words
from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import MAX_WORDS, VOCABULARY, tiny_smart, tiny_visual
from training.engine.trained_captioner import TrainedCaptioner
from training.models.captioner import PADDING_ID

VISUAL = tiny_visual(1, 6, seed=0)
IMAGES = np.zeros((1, 1, 1, 3), np.uint8)
ROUNDING = 0.01


@pytest.fixture
def trained():
    """A captioner to which two words are one and the same; the first is in its caption of :data:`VISUAL`."""
    words = (*SPECIAL, *VOCABULARY)
    captioner = tiny_smart(vocabulary_size=len(words))
    trained = TrainedCaptioner("smart", captioner, None, Vocabulary(words), {}, Search(3, MAX_WORDS))
    said = trained.caption(VISUAL).words[0, 0].tolist()
    unsaid = max(set(range(len(SPECIAL), len(words))) - set(said))
    with torch.no_grad():
        for table in (captioner.word_embedding.weight, captioner.word_projection.weight):
            table[unsaid] = table[said[0]]
    trained.twins = (said[0], unsaid)
    return trained


def beams_of(trained, visual=VISUAL):
    with torch.inference_mode():
        found = trained.caption(visual)
    return {"words": found.words.numpy().copy(), "log_probabilities": found.log_probabilities.numpy().copy()}


def with_the_other_twin(trained, beams):
    """The best caption in words that torch finds as probable."""
    first, second = trained.twins
    words = beams["words"][0, 0]
    is_first, is_second = words == first, words == second
    assert (is_first | is_second).any()
    words[is_first], words[is_second] = second, first
    return beams


def compared(trained, beams, rounding=ROUNDING):
    agreement = compare(trained, IMAGES, [beams], lambda images: VISUAL, rounding)
    return agreement.identical_captions, agreement.close_captions


def test_the_same_caption_is_identical(trained):
    assert compared(trained, beams_of(trained)) == (1, 0)


def test_another_caption_of_the_same_probabilities_is_close(trained):
    beams = with_the_other_twin(trained, beams_of(trained))
    assert compared(trained, beams) == (0, 1)
    beams["words"] = np.pad(beams["words"], ((0, 0), (0, 0), (0, 2)), constant_values=PADDING_ID)
    beams["log_probabilities"] = np.pad(beams["log_probabilities"], ((0, 0), (0, 0), (0, 2)))
    assert compared(trained, beams) == (0, 1)


def test_another_caption_whose_probabilities_are_not_those_of_torch_is_not_close(trained):
    beams = with_the_other_twin(trained, beams_of(trained))
    beams["log_probabilities"][0, 0, 0] -= 1
    assert compared(trained, beams) == (0, 0)


def test_a_caption_that_torch_finds_less_probable_than_its_own_is_not_close(trained):
    beams = beams_of(trained, tiny_visual(1, 6, seed=1))
    with torch.inference_mode():
        probabilities = score_words(trained, VISUAL, torch.from_numpy(beams["words"][0, 0])).numpy()
    beams["log_probabilities"][0, 0, : len(probabilities)] = probabilities
    assert compared(trained, beams) == (0, 0)
    assert compared(trained, beams, rounding=10.0) == (0, 1)
