"""The table of words that people use for classes: complete, in one spelling, and refused where it is malformed."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.grounding import ClassWords, CoverageError
from smart_caption_ros.grounding.class_words import class_words_path


def test_every_class_of_coco_has_words_and_no_other_class() -> None:
    words = ClassWords.load()
    assert words.classes == set(COCO_CLASSES)


def test_words_are_lower_case_and_stand_in_one_part_of_the_table_alone() -> None:
    words = ClassWords.load()
    assert not [word for word in (*words.classes_of, *words.never) if word != word.lower()]
    assert not words.never & set(words.classes_of)
    for line in class_words_path().read_text().splitlines():
        if line and not line.startswith("#"):
            listed = line.partition(":")[2].split()
            assert len(listed) == len(set(listed)), line
            assert listed == sorted(listed), line


@pytest.mark.parametrize(
    ("word", "class_name", "verdict"),
    [
        ("dog", "dog", True),
        ("sofa", "couch", True),
        ("bear", "teddy bear", True),
        ("cup", "bowl", False),
        ("lamp", "bed", False),
        ("room", "bed", False),
        ("room", "hallway", False),
        ("room", "room", True),
        ("lamp", "lantern", None),
        ("gadget", "mouse", None),
        ("sofa", "loveseat", None),
    ],
)
def test_the_table_says_yes_no_or_nothing(word: str, class_name: str, verdict: bool | None) -> None:
    assert ClassWords.load().verdict(word, class_name) is verdict


@pytest.mark.parametrize("line", ["couch sofa", "couch:", ": sofa"])
def test_a_malformed_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "words.txt").write_text(f"# words\n\n{line}\n")
    with pytest.raises(CoverageError, match=r"words\.txt, line 3: expected a class, a colon and words"):
        ClassWords.load(tmp_path / "words.txt")


def test_a_table_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CoverageError, match="cannot be read: No such file"):
        ClassWords.load(tmp_path / "words.txt")
