"""The words that detected objects raise and lower."""

import pytest

from smart_caption_ros.captioning import BundleError, Captioner
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.detection.detections import ClassScores
from smart_caption_ros.grounding import CoverageError, ObjectsGuide, guide_words
from smart_caption_ros.grounding.nouns import NounFinder
from smart_caption_ros.grounding.objects_guide import NEUTRAL_SCORE

WORDS = (
    "a", "giraffe", "giraffes", "animal", "dog", "dogs", "puppy", "zebra", "cat", "table", "desk", "grass", "light",
    "lights", "traffic", "sofa", "robot", "robots",
)  # fmt: skip
VOCABULARY = Vocabulary((*SPECIAL, *WORDS))
STRENGTH = 4.0
HALFWAY = NEUTRAL_SCORE + (1 - NEUTRAL_SCORE) / 4
"""A score that raises by half the strength: the square root of a quarter."""


@pytest.fixture(scope="module")
def finder(coverage):
    return coverage.finder


@pytest.fixture(scope="module")
def guide(finder):
    return ObjectsGuide(STRENGTH, finder)


def biases(guide, complete=False, **scores):
    named = {name.replace("_", " "): score for name, score in scores.items()}
    made = guide.word_biases(ClassScores(named, complete), VOCABULARY)
    assert made.bias.shape == made.groups.shape == (1, len(VOCABULARY))
    assert ((made.groups[0] > 0) == (made.bias[0] != 0)).all()
    return {VOCABULARY.words[i]: round(float(made.bias[0, i]), 3) for i in made.bias[0].nonzero()[0]}


def every_class(**scores):
    """Scores of COCO's classes, 0 where none is given."""
    return {name: scores.get(name.replace(" ", "_"), 0.0) for name in COCO_CLASSES}


def test_the_words_of_a_found_class_are_raised_in_both_numbers_and_no_other(guide):
    said = biases(guide, giraffe=HALFWAY)
    assert said.keys() == {"giraffe", "giraffes", "animal"}
    assert said["giraffe"] == said["giraffes"] == pytest.approx(STRENGTH / 2, abs=1e-3)
    assert 0 < said["animal"] < STRENGTH / 10  # it names many classes


def test_a_higher_score_raises_more_and_the_neutral_score_does_nothing(guide):
    raised = [biases(guide, dog=score).get("dog", 0.0) for score in (0.0, NEUTRAL_SCORE, 0.21, 0.5, 1.0)]
    assert raised[:2] == [0, 0]
    assert 0 < raised[2] < raised[3] < raised[4] == STRENGTH


def test_words_of_classes_with_low_scores_are_lowered_where_all_scores_are_known(guide):
    said = biases(guide, complete=True, **every_class(giraffe=0.9, cat=NEUTRAL_SCORE / 2, dog=NEUTRAL_SCORE))
    assert said["zebra"] == said["table"] == said["sofa"] == -STRENGTH
    assert said["cat"] == -STRENGTH / 2
    assert said["giraffe"] > 0
    assert not {"dog", "puppy", "grass", "robot", "a"} & said.keys()


def test_no_word_is_lowered_of_which_a_class_was_not_looked_for(guide):
    said = biases(guide, complete=True, dog=0.0, robot=0.0)
    assert said == dict.fromkeys(("dog", "dogs", "puppy", "robot", "robots"), -STRENGTH)


def test_the_words_of_a_class_are_one_group(guide):
    made = guide.word_biases(ClassScores(every_class(giraffe=0.9, couch=0.8) | {"robot": 0.7}, True), VOCABULARY)
    group = dict(zip(VOCABULARY.words, made.groups[0].tolist(), strict=True))
    assert group["giraffe"] == group["giraffes"] == group["animal"] != group["sofa"] > 0
    assert group["dog"] == group["puppy"] != group["zebra"]
    assert group["robot"] == group["robots"] not in {group[word] for word in WORDS if not word.startswith("robot")}
    assert group["grass"] == 0


def test_auto_leaves_a_captioner_as_it_is_that_has_no_detector_or_takes_no_guide(detecting_bundle, tiny_bundle):
    without_detector = Captioner.from_bundle(detecting_bundle, engine="onnxruntime-cpu", detector="none")
    assert guide_words(without_detector).guide is None
    without_inputs = Captioner.from_bundle(tiny_bundle, engine="onnxruntime-cpu")
    assert guide_words(without_inputs).guide is None
    with pytest.raises(BundleError, match="cannot guide this bundle"):
        guide_words(without_inputs, "bias")
    with pytest.raises(ValueError, match="loud"):
        guide_words(without_inputs, "loud")


def test_auto_leaves_a_captioner_as_it_is_where_spacy_is_missing(detecting_bundle, monkeypatch):
    captioner = Captioner.from_bundle(detecting_bundle, engine="onnxruntime-cpu")

    def fail():
        raise CoverageError("spaCy is missing")

    monkeypatch.setattr(NounFinder, "load", staticmethod(fail))
    assert guide_words(captioner).guide is None
    with pytest.raises(CoverageError):
        guide_words(captioner, "bias")
