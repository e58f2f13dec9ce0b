"""Nouns of captions: the pipeline that ships, measured; compounds and plurals."""

from pathlib import Path

import pytest

from smart_caption_ros.grounding import CoverageError
from smart_caption_ros.grounding.nouns import NounFinder

ANNOTATED = Path(__file__).with_name("annotated_captions.txt")


@pytest.fixture(scope="module")
def finder(coverage):
    return coverage.finder


def annotated_captions():
    """Captions, and which of their words are nouns."""
    lines = [line for line in ANNOTATED.read_text().splitlines() if not line.startswith("#")]
    return [(line.replace("*", ""), {i for i, word in enumerate(line.split()) if "*" in word}) for line in lines]


def f1_of_nouns(captions):
    finder = NounFinder.load(class_names=())
    hits = found = wanted = 0
    for caption, marked in captions:
        nouns = {noun.word_index for noun in finder.nouns(caption)}
        hits, found, wanted = hits + len(nouns & marked), found + len(nouns), wanted + len(marked)
    return 2 * hits / (found + wanted)


@pytest.mark.parametrize("part", [slice(0, 150), slice(150, 300)], ids=["flickr8k", "coco"])
def test_nouns_of_captions_annotated_by_hand_are_found_with_an_f1_of_95_percent(part):
    captions = annotated_captions()
    assert len(captions) == 300
    assert f1_of_nouns(captions[part]) >= 0.95


def test_nouns_come_in_order_with_their_places(finder):
    caption = "two dogs run past a wooden fence"
    assert [(noun.text, noun.lemma, noun.word_index) for noun in finder.nouns(caption)] == [
        ("dogs", "dog", 1),
        ("fence", "fence", 6),
    ]
    for noun in finder.nouns(caption):
        assert caption[noun.start : noun.end] == noun.text


@pytest.mark.parametrize(
    ("caption", "lemmas"),
    [
        ("two wine glasses on a dining table", ["wine glass", "dining table"]),
        ("a potted plant next to a teddy bear", ["potted plant", "teddy bear"]),
        ("a man eating a hot dog with his cell phone", ["man", "hot dog", "cell phone"]),
        ("a woman with a cellphone and a tennis racquet", ["woman", "cell phone", "tennis racket"]),
        ("a glass of wine on the table", ["glass", "wine", "table"]),
        ("three Fire Hydrants by the street", ["fire hydrant", "street"]),
    ],
)
def test_compounds_of_the_class_list_are_one_noun(finder, caption, lemmas):
    assert [noun.lemma for noun in finder.nouns(caption)] == lemmas


@pytest.mark.parametrize(
    ("caption", "lemmas"),
    [
        ("a hot-dog next to a teddy-bear", ["hot dog", "teddy bear"]),
        ("a hot\u2013dog", ["hot dog"]),
        ("a hotdog and two teddybears", ["hot dog", "teddy bear"]),
        ("wineglasses on a diningtable", ["wine glass", "dining table"]),
        ("people with wine-glasses", ["person", "wine glass"]),
        ("two snow boards and a snow-board", ["snowboard", "snowboard"]),
        ("a tooth brush, a key board and some back packs", ["toothbrush", "keyboard", "backpack"]),
        ("three trafficlights, fire-hydrants and a stop-sign", ["traffic light", "fire hydrant", "stop sign"]),
    ],
)
def test_class_names_are_one_noun_however_they_are_joined(finder, caption, lemmas):
    nouns = finder.nouns(caption)
    assert [noun.lemma for noun in nouns] == lemmas
    assert all(caption[noun.start : noun.end] == noun.text for noun in nouns)


@pytest.mark.parametrize(
    "caption",
    [
        "an orange on a plate",
        "a person eating an orange",
        "a plate with an orange, a banana and a cup",
        "an orange and banana on a table",
        "an orange sits on a table",
        "a slice of orange",
        "orange on a plate",
        "a half eaten orange",
        "there is an orange",
    ],
)
def test_a_class_that_is_also_a_colour_is_found_where_it_stands_for_the_object(finder, caption):
    assert "orange" in [noun.lemma for noun in finder.nouns(caption)]


@pytest.mark.parametrize(
    "caption",
    [
        "a man in an orange shirt",
        "an orange and white cat",
        "the cat is orange",
        "a cat that is black and orange",
        "a woman dressed in orange",
        "an orange colored vase",
        "an orange-red car",
        "two orange cats",
    ],
)
def test_a_colour_is_no_object(finder, caption):
    assert "orange" not in [noun.lemma for noun in finder.nouns(caption)]


def test_a_pipeline_that_is_not_there_is_refused_in_a_sentence():
    with pytest.raises(CoverageError, match=r"'xx_nothing_sm' cannot be loaded .* download xx_nothing_sm"):
        NounFinder.load("xx_nothing_sm")


def test_a_pipeline_without_a_tagger_is_refused(tmp_path):
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(CoverageError, match="finds no nouns"):
        NounFinder.load(tmp_path / "blank")
