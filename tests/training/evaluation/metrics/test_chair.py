"""CHAIR's published rules, case by case."""

import numpy as np
import pytest

from training.errors import DataError
from training.evaluation.metrics.chair import Synonyms, chair

LIST = """person, girl, man, woman, child, baby, policeman, adult, passenger
train, locomotive
airplane, plane, air plane, jet
bird, goose
dog, puppy
cow, calf
elephant
bear
tie, bow, bow tie
skis, ski
wine glass
knife, pocketknife
hot dog
chair, seat
toilet
teddy bear, teddybear
mouse
scissors
tv, television
bus
couch, sofa
donut, doughnut
"""


@pytest.fixture(scope="module")
def synonyms(tmp_path_factory):
    path = tmp_path_factory.mktemp("lexicon") / "synonyms.txt"
    path.write_text(LIST)
    return Synonyms.load(path)


@pytest.mark.parametrize(
    ("caption", "named"),
    [
        ("a girl with two dogs", ["person", "dog"]),
        ("two women and their children", ["person", "person"]),
        ("policemen beside puppies", ["person", "dog"]),
        ("a baby elephant", ["elephant"]),
        ("a baby and an elephant", ["person", "elephant"]),
        ("a passenger train", ["train"]),
        ("a man near the train tracks", ["person"]),
        ("hot dogs on a plate", ["hot dog"]),
        ("a hot day for a dog", ["dog"]),
        ("a toilet seat", ["toilet"]),
        ("the seat of a toilet", ["toilet"]),
        ("a seat", ["chair"]),
        ("a teddy bear", ["teddy bear"]),
        ("two bears", ["bear"]),
        ("two wine glasses and knives", ["wine glass", "knife"]),
        ("a man in a bow tie on skis", ["person", "tie", "skis"]),
        ("mice , geese , calves , scissors , buses , couches , doughnuts , televisions",
         ["mouse", "bird", "cow", "scissors", "bus", "couch", "donut", "tv"]),
        ("air planes", ["airplane"]),
        ("nothing here", []),
    ],
)  # fmt: skip
def test_objects_are_named_by_the_published_rules(synonyms, caption, named):
    assert synonyms.mentions(caption) == named


def test_rates_count_named_objects_and_captions(synonyms):
    said = {"a": "a dog and a cow on a couch", "b": "a man", "c": "blue sky"}
    human = {"a": ["a sofa"], "b": ["some people"], "c": ["the sky"]}
    chair_i, chair_s, objects_supported, captions_supported = chair(
        said, human, {"a": ["dog"], "b": ["person"], "c": []}, synonyms
    )
    assert chair_i.value == pytest.approx(1 / 4), "the cow; the couch is in a human caption"
    assert chair_s.value == pytest.approx(1 / 3)
    np.testing.assert_allclose(chair_i.per_image, [1 / 3, 0, np.nan])
    assert chair_s.per_image.tolist() == [1, 0, 0]
    assert objects_supported.value == pytest.approx(3 / 4)
    assert captions_supported.value == pytest.approx(2 / 3)
    np.testing.assert_allclose(objects_supported.per_image, [2 / 3, 1, np.nan])
    assert captions_supported.per_image.tolist() == [0, 1, 1]


def test_a_missing_or_empty_list_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.txt"):
        Synonyms.load(tmp_path / "nowhere.txt")
    (tmp_path / "empty.txt").write_text("\n , \n")
    with pytest.raises(DataError, match="no class"):
        Synonyms.load(tmp_path / "empty.txt")
