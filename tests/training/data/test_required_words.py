"""The words of the detector's classes that a vocabulary is to have."""

from collections import Counter

from recipes.lexicon.class_word_forms import class_word_forms
from training.data.required_words import words_of_detector
from training.data.tokenizer import build_vocabulary
from training.vision.detection_classes import DETECTION_CLASSES


def test_every_class_name_of_the_detector_is_required_and_the_words_people_use() -> None:
    words = words_of_detector()
    assert {part for name in DETECTION_CLASSES for part in name.split()} <= words
    assert {"giraffes", "woman", "sofa", "tv", "hydrant", "people"} <= words
    assert not {"davenport", "the", "kitchen"} & words


def test_a_required_word_is_in_the_vocabulary_however_rare_it_is() -> None:
    counts = {"dog": 9, "giraffe": 1, "rare": 2}
    assert build_vocabulary(counts, 5, {"giraffe", "zebra", "dog"}).words[4:] == ("dog", "giraffe", "zebra")
    assert build_vocabulary(counts, 5).words[4:] == ("dog",)


def test_word_forms_are_those_that_occur_often_in_either_number() -> None:
    counts = Counter({"sofa": 9, "sofas": 5, "couches": 4, "settee": 1, "dogs": 7, "kitchen": 50})
    forms = class_word_forms(counts, 5)
    assert forms["couch"] == ["couch", "sofa", "sofas"]
    assert forms["dog"] == ["dog", "dogs"]
    assert forms["hot dog"] == ["dog", "hot"]
    assert forms.keys() == set(DETECTION_CLASSES)
