"""CIDErBtw of references, the weights that follow from it, and what objectives do with them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch.nn import functional

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import padded_logits, tiny_captioner, tiny_visual
from training.configs.schema import PhaseConfig
from training.data.captions import EncodedCaptions
from training.data.tokenized_captions import TokenizedCaptions
from training.evaluation.metrics.cider_btw import cider_btw
from training.evaluation.metrics.cider_d import CiderD
from training.models.captioner import PADDING_ID
from training.objectives.cross_entropy import CrossEntropy
from training.objectives.distinctiveness import Distinctiveness
from training.objectives.objective import TrainingCaptions
from training.objectives.self_critical import SelfCritical

VOCABULARY = Vocabulary((*SPECIAL, *(f"w{index}" for index in range(4, 30))))
CAPTIONS = [
    [["w4", "w5", "w6", "w7"], ["w4", "w5", "w9"], ["w20", "w21", "w4"]],
    [["w4", "w5", "w6", "w8"], ["w4", "w5", "w10", "w11"]],
    [["w12", "w5", "w6", "w4"]],
    [["w22", "w23"], ["w24", "w4", "w5"]],
]
SIMILAR = [[1, 2], [0, 2], [1], []]
WORDS = TokenizedCaptions.from_words(CAPTIONS)
DISTINCTIVENESS = Distinctiveness.of_captions(WORDS, SIMILAR)


def training_captions(weights: np.ndarray | None = None) -> TrainingCaptions:
    return TrainingCaptions(WORDS, VOCABULARY, 6, 6, weights, DISTINCTIVENESS)


def self_critical(**options: float) -> SelfCritical:
    return SelfCritical(training_captions(), PhaseConfig("scst", 1, 1e-5, objective="self_critical", **options))


def ids(caption: str) -> np.ndarray:
    return np.array([[[*VOCABULARY.encode(caption.split()), Vocabulary.end_id]]])


def test_cider_btw_of_every_reference_is_that_of_the_metric() -> None:
    references = {str(image): [" ".join(words) for words in captions] for image, captions in enumerate(CAPTIONS)}
    similar = {str(image): [str(other) for other in others] for image, others in enumerate(SIMILAR)}
    assert DISTINCTIVENESS.similar.tolist() == [[1, 2], [0, 2], [1, -1], [-1, -1]]
    assert DISTINCTIVENESS.counts.tolist() == [3, 2, 1, 2]
    for place in range(3):
        candidates = {image: texts[min(place, len(texts) - 1)] for image, texts in references.items()}
        expected = cider_btw(candidates, references, similar).per_image
        for image in range(3):
            if place < len(CAPTIONS[image]):
                assert DISTINCTIVENESS.cider_btw[image, place] == pytest.approx(expected[image], rel=1e-5)
    assert not DISTINCTIVENESS.cider_btw[3].any()


def test_a_caption_that_fits_similar_images_as_well_has_the_smallest_weight() -> None:
    weights = DISTINCTIVENESS.weights(0.9)
    assert weights[0, 2] > weights[0, 1] > weights[0, 0]
    assert weights[3, :2].tolist() == [1, 1]


@given(
    arrays.arrays(np.float32, (4, 3), elements=st.floats(0, 10, width=32)),
    arrays.arrays(np.int64, 4, elements=st.integers(1, 3)),
    st.floats(0, 0.99),
)
def test_weights_fall_with_cider_btw_and_their_mean_is_1(
    values: np.ndarray, counts: np.ndarray, strength: float
) -> None:
    values = values * (np.arange(3) < counts[:, None])
    weights = Distinctiveness(np.full((4, 0), -1), values, counts).weights(strength)
    for own, of_image, count in zip(weights, values, counts, strict=True):
        assert own[:count].mean() == pytest.approx(1, abs=1e-5)
        order = np.argsort(of_image[:count])
        assert (np.diff(own[:count][order]) <= 1e-5).all()
        assert (own[:count] > 0).all()


def test_cross_entropy_counts_captions_by_their_weights() -> None:
    captioner, visual, images = tiny_captioner("smart"), tiny_visual(4, 6, seed=3), np.array([2, 0, 3, 1])
    of_images = np.array([0.5, 2.0, 1.0, 3.0], np.float32)
    phase = PhaseConfig("xe", 1, 1e-3, cider_btw_weighting=0.9)
    objective = CrossEntropy(training_captions(of_images), phase)
    found = objective(captioner, visual, images, objective.targets(images)).loss
    words = torch.from_numpy(EncodedCaptions(WORDS, VOCABULARY, 6).read(images))
    losses = functional.cross_entropy(
        padded_logits(captioner, visual, words[..., :-1]).flatten(0, -2),
        words[..., 1:].flatten(),
        ignore_index=PADDING_ID,
        reduction="none",
    ).view(words[..., 1:].shape)
    weights = torch.from_numpy(DISTINCTIVENESS.weights(0.9)[images] * of_images[images, None])[..., None]
    real = words[..., 1:] != PADDING_ID
    torch.testing.assert_close(found, (losses * weights).sum() / (real * weights).sum(), rtol=1e-5, atol=1e-6)
    terms = (real * weights).sum((1, 2)).numpy()
    np.testing.assert_allclose(objective.weights(images), terms, rtol=1e-5)


def test_the_reward_is_the_weighted_mean_of_cider_against_each_reference() -> None:
    caption = ids("w4 w5 w6 w9")
    for image, captions in enumerate(CAPTIONS):
        alone = []
        for words in captions:
            encoded = [[VOCABULARY.encode(words)]]
            corpus = [[VOCABULARY.encode(each) for each in group] for group in CAPTIONS]
            alone.append(CiderD(encoded, corpus, end_token=True).score(np.array([0]), caption)[0, 0])
        own = DISTINCTIVENESS.weights(0.9)[image, : len(captions)]
        found = self_critical(cider_btw_weighting=0.9).reward(np.array([image]), caption)
        assert found[0, 0] == pytest.approx(np.mean(own * alone), rel=1e-5)


def test_a_share_of_the_sampled_captions_cider_btw_is_subtracted_from_the_reward() -> None:
    captions = np.concatenate([ids("w4 w5 w6 w7"), ids("w20 w21 w4 w5")], axis=1)
    plain, penalised = self_critical(), self_critical(cider_btw_reward=0.5)
    for image, others in enumerate(SIMILAR):
        own = plain.reward(np.array([image]), captions)
        of_others = [plain.reward(np.array([other]), captions) for other in others]
        expected = own - 0.5 * np.mean(of_others, axis=0) if others else own
        np.testing.assert_allclose(penalised.reward(np.array([image]), captions), expected, rtol=1e-6)
    batch = penalised.reward(np.arange(4), np.repeat(captions, 4, axis=0))
    assert batch.shape == (4, 2)
    assert batch[0, 0] != plain.reward(np.arange(4), np.repeat(captions, 4, axis=0))[0, 0]
