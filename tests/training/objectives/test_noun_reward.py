"""Nouns that pay: those of what is there, and not those of what is missing."""

import numpy as np
import pytest

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.config import PhaseConfig
from training.detection.labels import Boxes, Labels
from training.objectives.noun_reward import FEWEST, WRONG, KnownObjects, NounReward
from training.objectives.objective import TrainingCaptions
from training.objectives.self_critical import SelfCritical

CLASSES = ("cup", "dining table", "dog", "orange", "person")
CAPTIONS = [
    "a man with two cups at a table", "two men and a woman", "a dog beside a cup", "an orange shirt on a man",
    "a woman in an orange dress", "two dogs in orange water", "a table in an orange room",
]  # fmt: skip
WORDS = (*SPECIAL, *sorted({word for caption in CAPTIONS for word in caption.split()}))
VOCABULARY = Vocabulary(WORDS)


def boxes(*found: tuple[str, float]) -> Boxes:
    return Boxes(
        np.tile(np.array([0.1, 0.1, 0.4, 0.5], np.float32), (len(found), 1)),
        np.array([CLASSES.index(name) for name, _ in found], np.int64),
        np.array([score for _, score in found], np.float32),
    )


@pytest.fixture(scope="module")
def objects() -> KnownObjects:
    sought, two = np.ones(len(CLASSES), bool), np.isin(CLASSES, ["cup", "dining table"])
    labels = Labels(CLASSES, made_by=["test"])
    labels.boxes = {
        "table": boxes(("dining table", 0.9), ("cup", 0.6), ("cup", 0.5), ("person", 0.2)),
        "rendered": boxes(("cup", 1.0)),
    }
    labels._sought = {"table": sought, "rendered": two}
    return KnownObjects.from_labels(labels, ["table", "rendered", "unlabelled"])


@pytest.fixture(scope="module")
def reward(objects: KnownObjects) -> NounReward:
    return NounReward(objects, [caption.split() for caption in CAPTIONS], VOCABULARY)


def score(reward: NounReward, image: int, caption: str) -> float:
    ids = [WORDS.index(word) for word in caption.split()]
    words = np.full((1, 1, 12), VOCABULARY.padding_id)
    words[0, 0, : len(ids)] = ids
    return float(reward.score(np.array([image]), words)[0, 0])


def test_what_is_there_pays_once_however_often_it_is_said(reward: NounReward) -> None:
    assert score(reward, 0, "a cup") == pytest.approx(1 / FEWEST)
    assert score(reward, 0, "two cups beside a cup") == pytest.approx(1 / FEWEST)
    assert score(reward, 0, "a table with two cups") == pytest.approx(2 / FEWEST)


def test_what_is_not_there_costs_and_what_may_be_there_does_not(reward: NounReward) -> None:
    assert score(reward, 0, "a dog") == pytest.approx(-WRONG / FEWEST)
    assert score(reward, 0, "a man") == 0
    assert score(reward, 1, "a cup and a dog") == pytest.approx(1 / FEWEST), "nobody looked for dogs"
    assert score(reward, 2, "a dog and a man") == 0, "nothing is known of it"


def test_a_word_that_is_no_noun_in_the_captions_says_nothing(reward: NounReward) -> None:
    assert score(reward, 0, "an orange dress") == 0


def test_captions_of_a_batch_are_scored_each_by_its_image(reward: NounReward) -> None:
    captions = ["a cup", "a dog", "a table"]
    words = np.full((2, 3, 4), VOCABULARY.padding_id)
    for place, caption in enumerate(captions):
        for column, word in enumerate(caption.split()):
            words[:, place, column] = WORDS.index(word)
    found = reward.score(np.array([0, 1]), words)
    expected = [[score(reward, image, caption) for caption in captions] for image in (0, 1)]
    np.testing.assert_allclose(found, expected)


def test_self_critical_training_adds_it_to_cider_as_the_phase_says(objects: KnownObjects, reward: NounReward) -> None:
    of_images = [CAPTIONS[:2], CAPTIONS[2:3], CAPTIONS[3:]]
    captions = TrainingCaptions([[c.split() for c in group] for group in of_images], VOCABULARY, 12, objects=objects)
    phase = {"name": "p", "epochs": 1, "learning_rate": 1e-3, "objective": "self_critical"}
    plain = SelfCritical(captions, PhaseConfig(**phase)).reward
    paid = SelfCritical(captions, PhaseConfig(**phase, noun_weight=0.5)).reward
    images, words = np.array([0, 1]), np.full((2, 2, 6), VOCABULARY.padding_id)
    for place, caption in enumerate(["a man with two cups", "a dog"]):
        ids = [WORDS.index(word) for word in caption.split()]
        words[:, place, : len(ids) + 1] = [*ids, VOCABULARY.end_id]
    added = paid(images, words) - plain(images, words)
    np.testing.assert_allclose(added, 0.5 * reward.score(images, words), atol=1e-12)
    assert added[0, 0] == pytest.approx(0.5 / FEWEST)
