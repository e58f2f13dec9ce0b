"""The reward for objects that captions name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.configs.schema import PhaseConfig
from training.data.noun_evidence import DecidedNouns, NounEvidence
from training.data.tokenized_captions import TokenizedCaptions
from training.objectives.noun_support import PRICE, NounSupport, nouns_in
from training.objectives.objective import TrainingCaptions
from training.objectives.self_critical import SelfCritical

DECIDED = DecidedNouns(
    {"couch": "sofa", "sofa": "sofa", "dog": "dog", "wall": "wall", "table": "table", "dining table": "table"},
    frozenset({"wall"}),
)
ROOM = NounEvidence(DECIDED, frozenset({"couch", "sofa", "wall"}), frozenset({"table", "dining table"}))
WORDS = (*SPECIAL, "a", "couch", "sofas", "dog", "wall", "table", "dining", "hot", "red", "and")
VOCABULARY = Vocabulary(WORDS)


def ids(*captions: str) -> np.ndarray:
    """Return (1, k, 12) ids, with an end token and padding behind the words."""
    rows = [[WORDS.index(word) for word in caption.split()] + [Vocabulary.end_id] for caption in captions]
    return np.array([[row + [0] * (12 - len(row)) for row in rows]])


@pytest.mark.parametrize(
    ("caption", "score"),
    [
        ("a red and a red", 0),
        ("a couch", 1),
        ("a couch and a wall", 1),  # background earns nothing
        ("a couch and a couch", 1),
        ("a couch and a sofas", 1),  # synonyms are one object
        ("a dog", -PRICE),
        ("a dog and a dog", -PRICE),
        ("a couch and a dog", 1 - PRICE),
        ("a table", 0),  # it may be there
        ("a dining table and a couch", 1),
        ("a hot dog", 0),  # is no dog
    ],
)
def test_objects_that_are_there_earn_one_and_others_cost_two(caption: str, score: float) -> None:
    support = NounSupport([ROOM], VOCABULARY)
    assert support.score(np.array([0]), ids(caption)).tolist() == [[score]]


def test_words_behind_the_end_of_a_caption_do_not_count() -> None:
    words = ids("a couch")
    words[0, 0, 5] = WORDS.index("dog")
    assert NounSupport([ROOM], VOCABULARY).score(np.array([0]), words).tolist() == [[1]]


def test_a_photograph_without_evidence_scores_nothing() -> None:
    support = NounSupport([None, ROOM], VOCABULARY)
    words = np.concatenate([ids("a dog"), ids("a dog")])
    assert support.score(np.array([0, 1]), words).tolist() == [[0], [-PRICE]]


@given(st.lists(st.sampled_from(WORDS[4:]), max_size=11), st.randoms())
def test_the_order_of_single_nouns_does_not_matter(words: list[str], random: "st.randoms") -> None:
    single = [word for word in words if word not in ("dining", "hot")]
    mixed = list(single)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert nouns_in(single, DECIDED) == nouns_in(mixed, DECIDED)


def captions(weights: list[float] | None) -> TrainingCaptions:
    words = TokenizedCaptions.from_words([[["a", "couch"]], [["a", "dog"]]])
    chosen = None if weights is None else np.array(weights, np.float32)
    return TrainingCaptions(words, VOCABULARY, 12, 12, chosen, noun_evidence=[ROOM, None])


def test_self_critical_training_adds_the_share_of_the_phase() -> None:
    phase = {"name": "rl", "epochs": 1, "learning_rate": 1e-5, "objective": "self_critical"}
    words = np.concatenate([ids("a couch", "a dog"), ids("a couch", "a dog")])
    images = np.array([0, 1])
    plain = SelfCritical(captions(None), PhaseConfig(**phase)).reward(images, words)  # type: ignore[arg-type]
    rewarded = PhaseConfig(**phase, noun_support_reward=0.25)  # type: ignore[arg-type]
    found = SelfCritical(captions(None), rewarded).reward(images, words)
    np.testing.assert_allclose(found - plain, [[0.25, -0.25 * PRICE], [0, 0]])
    assert SelfCritical(captions(None), rewarded).max_loss > SelfCritical(captions(None), PhaseConfig(**phase)).max_loss  # type: ignore[arg-type]


def test_the_weight_of_an_images_captions_scales_their_cider_and_not_the_objects() -> None:
    phase = PhaseConfig("rl", 1, 1e-5, objective="self_critical", noun_support_reward=0.25)
    words = np.concatenate([ids("a couch", "a dog"), ids("a couch", "a dog")])
    images = np.array([0, 1])
    support = np.array([[0.25, -0.5], [0, 0]])
    whole = SelfCritical(captions([1, 1]), phase).reward(images, words) - support
    assert whole.max() > 0
    found = SelfCritical(captions([0.5, 1]), phase).reward(images, words) - support
    np.testing.assert_allclose(found, whole * [[0.5], [1]])
