"""Which things a caption names, and which of them an exhaustive list shows."""

from itertools import pairwise

import pytest

from training.data.looked_at import LookedAt
from training.data.things import Things

THINGS = Things(["door", "door knob", "office chair", "price tag", "tv stand", "zebra", "metal", "shower curtain"])


@pytest.mark.parametrize(
    ("caption", "named"),
    [
        ("two doors and a shower curtain", ["door", "shower curtain"]),
        ("a metal shelf beside an office chair", ["shelf", "office chair"]),
        ("a child's bed in a room without windows", ["bed"]),
        ("a man stands by a tv", ["man", "tv"]),
        ("the light of a glass and metal", []),
    ],
)
def test_the_last_noun_of_a_compound_is_what_a_caption_names(caption, named):
    assert THINGS.named(caption) == named


@pytest.mark.parametrize(
    ("caption", "things", "absent"),
    [
        ("a sofa and a zebra", ["couch"], ["zebra"]),
        ("a chair at a desk", ["office chair", "table"], []),
        ("a tv", ["tv stand"], ["tv"]),
        ("a woman with a puppy", ["person", "dog"], []),
        ("a bedroom with a bed", ["bed"], []),
        ("a bathroom with a bed", ["bed", "bedroom"], ["bathroom"]),
    ],
)
def test_synonyms_and_kinds_of_listed_things_are_there(caption, things, absent):
    assert THINGS.absent(caption, THINGS.shown(things, ())) == absent


@pytest.mark.parametrize(
    ("caption", "miscoloured"),
    [
        ("a red sofa and a white zebra", []),
        ("a blue couch beside a white wooden door", [("blue", "couch"), ("white", "door")]),
        ("a green door and a red lamp", []),
        ("a zebra in red", []),
    ],
)
def test_a_colour_is_wrong_where_the_captions_give_that_thing_another_or_it_to_another_thing(caption, miscoloured):
    shown = THINGS.shown(["couch", "door"], ["a red couch and a white zebra", "a door"])
    assert THINGS.miscoloured(caption, shown) == miscoloured


def test_what_a_caption_of_the_image_names_is_there_too():
    assert THINGS.judge("a zebra", THINGS.shown([], ["two zebras"])) == {"zebra": True}


@pytest.mark.needs_data
def test_captions_by_looking_are_true_of_their_photographs_and_false_of_others(data_dir):
    dataset = LookedAt().open(data_dir)
    photographs = dataset.split("dev")
    things = Things.of_lists(dataset.things.values())
    own = other = 0
    for photograph, next_one in pairwise(photographs):
        first, second, third = dataset.captions[photograph]
        shown = things.shown(dataset.things[photograph], (first, third))
        own += bool(things.absent(second, shown))
        other += bool(things.absent(dataset.captions[next_one][1], shown))
    assert own < 0.06 * len(photographs)
    assert other > 0.7 * len(photographs)
