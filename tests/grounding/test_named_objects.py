"""The nouns of a caption name the objects that a person would say they name."""

import pytest

from smart_caption_ros.captioning import Caption, DetectedObject, Timing, Word
from smart_caption_ros.grounding.named_objects import GroundedNoun, ground_caption


def caption(text, *objects, tokens=None):
    box = (0.0, 0.0, 1.0, 1.0)
    return Caption(
        text=text,
        words=tuple(Word(token, -0.1, box) for token in (text if tokens is None else tokens).split()),
        score=-1.0,
        confidence=0.5,
        alternatives=(),
        timing=Timing(0, 0, 0, 0, 1),
        image_size=(10, 10),
        model="m",
        engine="e",
        objects=tuple(DetectedObject(name, 0, score, box) for name, score in objects),
    )


def named(coverage, spoken):
    return [(noun.text, noun.word_index, noun.object_index) for noun in ground_caption(coverage, spoken).nouns]


def test_each_noun_names_the_object_of_its_class_and_other_nouns_name_none(coverage):
    spoken = caption("a dog with wine glasses in the sunshine", ("wine glass", 0.5), ("oven", 0.9), ("dog", 0.7))
    grounding = ground_caption(coverage, spoken)
    assert grounding.nouns == (
        GroundedNoun("dog", "dog", 1, 2, 1.0),
        GroundedNoun("wine glasses", "wine glass", 3, 0, 1.0),
        GroundedNoun("sunshine", "sunshine", 7, None, 0.0),
    )
    assert grounding.missed_classes == ("oven",)
    assert grounding.unsupported_nouns == ("sunshine",)
    assert grounding.coverage == pytest.approx(coverage.score(spoken.text, ["wine glass", "oven", "dog"]).coverage)
    assert grounding.time_s > 0


def test_nouns_of_one_class_name_one_object_each_the_surest_first(coverage):
    spoken = caption("a dog and a dog and a dog", ("dog", 0.4), ("dog", 0.9))
    assert named(coverage, spoken) == [("dog", 1, 1), ("dog", 4, 0), ("dog", 7, 1)]


def test_two_words_for_one_object_both_name_it(coverage):
    sofa, couch = ground_caption(coverage, caption("a sofa or a couch", ("couch", 0.9))).nouns
    assert (couch.object_index, couch.similarity) == (0, 1.0)
    assert sofa.object_index == 0
    assert 0.65 <= sofa.similarity < 1


def test_words_are_counted_as_the_caption_counts_them(coverage):
    spoken = caption("a man's dog", ("dog", 0.9), tokens="a man 's dog")
    assert named(coverage, spoken)[-1] == ("dog", 3, 0)
    assert named(coverage, caption("a man's dog", ("dog", 0.9), tokens=""))[-1] == ("dog", 2, 0)


@pytest.mark.parametrize(
    ("text", "noun", "class_name"),
    [
        ("a girl in a red dress", "girl", "person"),
        ("two women are cooking", "women", "person"),
        ("people around a desk", "people", "person"),
        ("a skater jumps", "skater", "person"),
        ("a sofa under a window", "sofa", "couch"),
        ("a monitor on a desk", "monitor", "television"),
        ("a monitor on a desk", "desk", "dining table"),
        ("a brown puppy", "puppy", "dog"),
        ("an animal on a bed", "animal", "cat"),
        ("a fridge in the corner", "fridge", "refrigerator"),
        ("a plant in a pot", "plant", "potted plant"),
        ("a bike leans on a wall", "bike", "bicycle"),
        ("a bike leans on a wall", "bike", "motorcycle"),
        ("a phone beside a mug", "mug", "cup"),
        ("a phone beside a mug", "phone", "cell phone"),
    ],
)
def test_a_word_that_people_use_for_a_class_names_it(coverage, text, noun, class_name):
    found = {grounded.text: grounded for grounded in ground_caption(coverage, caption(text, (class_name, 0.9))).nouns}
    assert found[noun].object_index == 0


@pytest.mark.parametrize(
    ("text", "class_name"),
    [
        ("a room with a view", "dining table"),
        ("two girls in the street", "dog"),
        ("a kitchen with a window", "oven"),
        ("a street in a field", "bus"),
        ("a dog in the grass", "cat"),
        ("a cup on a counter", "bowl"),
        ("a man and a woman", "chair"),
        ("a bedroom", "bed"),
        ("a truck on the road", "car"),
        ("a lamp beside a pillow", "bed"),
    ],
)
def test_likeness_of_word_vectors_alone_names_no_object_of_another_kind(coverage, text, class_name):
    grounding = ground_caption(coverage, caption(text, (class_name, 0.9)))
    assert [noun.object_index for noun in grounding.nouns] == [None] * len(grounding.nouns)
    assert grounding.missed_classes == (class_name,)
    assert grounding.noun_support == 0


def test_another_detectors_class_is_named_by_its_own_name_and_by_what_is_like_it(coverage):
    spoken = caption("a lamp in a room beside a shirt", ("room", 0.9), ("jacket", 0.8), ("lamp", 0.7))
    assert named(coverage, spoken) == [("lamp", 1, 2), ("room", 4, 0), ("shirt", 7, 1)]


def test_of_two_classes_that_a_word_may_mean_it_names_the_likelier_and_misses_the_other(coverage):
    grounding = ground_caption(coverage, caption("a kitten is a pet", ("horse", 0.9), ("cat", 0.5), ("dog", 0.4)))
    kitten, pet = grounding.nouns
    assert kitten.object_index == 1
    assert pet.object_index in (1, 2)
    assert "horse" in grounding.missed_classes
