"""CIDEr-D and the penalty of captions that fit similar images as well."""

import numpy as np

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.configs.schema import PhaseConfig
from training.evaluation.metrics.cider_d import CiderD
from training.objectives.objective import TrainingCaptions
from training.objectives.rewards import make_rewards
from training.objectives.self_critical import SelfCritical

VOCABULARY = Vocabulary((*SPECIAL, *(f"w{index}" for index in range(4, 30))))
CAPTIONS = [
    [["w4", "w5", "w6", "w7"], ["w4", "w5", "w9"], ["w20", "w21", "w4"]],
    [["w4", "w5", "w6", "w8"], ["w4", "w5", "w10", "w11"]],
    [["w12", "w5", "w6", "w4"]],
    [["w22", "w23"], ["w24", "w4", "w5"]],
]
SIMILAR = np.array([[1, 2], [0, 2], [1, -1], [-1, -1]])


def self_critical(weights=None, **options):
    captions = TrainingCaptions(CAPTIONS, VOCABULARY, 6, 6, weights, SIMILAR)
    phase = PhaseConfig("scst", 1, 1e-5, objective="self_critical", **options)
    return SelfCritical(captions, phase)


def sampled(*captions):
    return np.array([[[*VOCABULARY.encode(caption.split()), Vocabulary.end_id] for caption in captions]])


def test_the_reward_is_cider_d_less_a_share_of_that_against_the_captions_of_similar_images():
    captions = sampled("w4 w5 w6 w7", "w20 w21 w4 w5")
    corpus, penalised = CiderD.from_words(CAPTIONS, VOCABULARY, end_token=True), self_critical(cider_btw_reward=0.5)
    for image, others in enumerate(SIMILAR):
        own = corpus.score(np.array([image]), captions)
        of_others = [corpus.score(np.array([other]), captions) for other in others if other >= 0]
        expected = own - 0.5 * np.mean(of_others, axis=0) if of_others else own
        np.testing.assert_allclose(self_critical().reward(np.array([image]), captions), own)
        np.testing.assert_allclose(penalised.reward(np.array([image]), captions), expected, rtol=1e-6)
    batch = penalised.reward(np.arange(4), np.repeat(captions, 4, axis=0))
    assert batch.shape == (4, 2)
    assert batch[0, 0] != self_critical().reward(np.arange(4), np.repeat(captions, 4, axis=0))[0, 0]


def test_the_weight_of_an_image_multiplies_its_reward():
    captions, weights = sampled("w4 w5 w6 w7"), np.array([0.5, 1, 1, 2], np.float32)
    plain = self_critical(cider_btw_reward=0.2).reward(np.array([0, 3]), np.repeat(captions, 2, axis=0))
    found = self_critical(weights, cider_btw_reward=0.2).reward(np.array([0, 3]), np.repeat(captions, 2, axis=0))
    np.testing.assert_allclose(found, plain * [[0.5], [2]])


def test_each_thing_that_an_exhaustive_list_lacks_and_each_wrong_colour_is_charged_for():
    vocabulary = Vocabulary((*SPECIAL, "a", "sofa", "lamp", "dog", "puppy", "and", "night", "red"))
    words = [[["a", "red", "lamp"]], [["a", "dog"]]]
    captions = TrainingCaptions(words, vocabulary, 6, 6, things=[("couch",), None])
    phase = PhaseConfig("scst", 1, 1e-5, objective="self_critical", absent_penalty=0.3)
    plain, charged = (make_rewards(captions, phase)[:count] for count in (1, 2))
    texts = ("a sofa and a lamp", "a puppy and a dog", "a sofa and a night", "a lamp and red sofa")
    said = np.array([[vocabulary.encode(text.split()) for text in texts]] * 2)
    images = np.array([0, 1])
    difference = sum(reward.score(images, said) for reward in charged) - plain[0].score(images, said)
    np.testing.assert_allclose(difference, [[0.0, -0.6, -0.3, -0.3], [0.0, 0.0, 0.0, 0.0]])
