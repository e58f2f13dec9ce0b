"""What the page is told: the objects that a noun names, and why a camera gives nothing."""

from dataclasses import replace

import pytest

from smart_caption_ros.grounding.named_objects import GroundedNoun
from smart_caption_ros.serving.page_json import caption_json
from tests.serving.captions import CUP, TABLE, live_caption

CUPS = [replace(CUP, score=0.9 - n / 10) for n in range(4)]


@pytest.mark.parametrize(
    ("text", "index", "lemma", "named"),
    [
        ("a cup here", 1, "cup", [0]),
        ("two cups here", 1, "cup", [0, 2]),
        ("three small red cups", 3, "cup", [0, 2, 3]),
        ("cups on it", 0, "cup", [0, 2, 3, 4]),
        ("six cups here", 1, "cup", [0, 2, 3, 4]),
        ("two tables with cups", 3, "cup", [0, 2, 3, 4]),
    ],
)
def test_a_plural_names_as_many_objects_of_its_class_as_it_says(text, index, lemma, named):
    live = live_caption(text)
    objects = (CUPS[0], TABLE, *CUPS[1:])
    nouns = [GroundedNoun(text.split()[index], lemma, index, 0, 1.0)]
    if "tables" in text:
        nouns.insert(0, GroundedNoun("tables", "table", 1, 1, 1.0))
    live = replace(
        live,
        caption=replace(live.caption, objects=objects),
        grounding=replace(live.grounding, nouns=tuple(nouns)),
    )
    assert caption_json(live, 1, None)["named_objects"][-1] == named
