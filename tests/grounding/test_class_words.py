"""The table of words that people use for classes: complete, in one spelling, and refused where it is malformed."""

import pytest

from smart_caption_ros.grounding import ClassWords, CoverageError


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
def test_the_table_says_yes_no_or_nothing(word, class_name, verdict):
    assert ClassWords.load().verdict(word, class_name) is verdict


@pytest.mark.parametrize("line", ["couch sofa", "couch:", ": sofa"])
def test_a_malformed_line_is_named(tmp_path, line):
    (tmp_path / "words.txt").write_text(f"# words\n\n{line}\n")
    with pytest.raises(CoverageError, match=r"words\.txt, line 3: expected a class, a colon and words"):
        ClassWords.load(tmp_path / "words.txt")
