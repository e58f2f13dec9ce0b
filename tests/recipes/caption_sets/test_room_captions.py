"""Captions of rooms from positions, counts and colours."""

from recipes.caption_sets.fluency import Fluency
from recipes.caption_sets.positions import Position
from recipes.caption_sets.room_captions import MAX_CAPTIONS, MAX_WORDS, MIN_WORDS, RoomWriter
from recipes.rooms.questions import Facts
from training.data.tokenizer import tokenize

FACTS = Facts(("bed", "lamp", "chair"), {"bed": "white"}, {"chair": 2}, ())
POSITIONS = [
    Position(("a lamp",), "sitting", (("on", "a table"), ("next to", "a bed"))),
    Position(("a picture",), "", (("on", "the wall"),)),
]


class Lenient(Fluency):
    """Everything reads well."""

    def __init__(self) -> None:
        super().__init__([])

    def reads_well(self, words: object) -> bool:
        return True


def captions(positions: list[Position], facts: Facts = FACTS, room: str = "bedroom", fluency: Fluency | None = None,
             seed: str = "image1.jpg") -> list[str]:  # fmt: skip
    return RoomWriter(facts, positions, room, fluency or Lenient(), seed).captions()


def test_captions_say_where_things_are_in_which_room() -> None:
    found = captions(POSITIONS)
    assert 2 <= len(found) <= MAX_CAPTIONS
    text = " / ".join(found)
    assert "lamp" in text
    assert "on the wall" in text
    assert "bedroom" in text
    assert all(MIN_WORDS <= len(tokenize(caption)) <= MAX_WORDS for caption in found)


def test_without_positions_large_things_are_listed_with_colour_and_number() -> None:
    found = captions([])
    assert found[0] == "a bedroom with a white bed and two chairs"


def test_nothing_known_gives_no_captions() -> None:
    assert captions([], Facts((), {}, {}, ())) == []


def test_only_what_reads_like_people_is_kept() -> None:
    fluency = Fluency([tokenize("a bedroom with a white bed and two chairs")])
    assert captions(POSITIONS, fluency=fluency) == ["a bedroom with a white bed and two chairs"]


def test_equal_photographs_have_equal_captions() -> None:
    assert captions(POSITIONS) == captions(POSITIONS)
    seeds = [captions(POSITIONS, seed=f"image{number}.jpg") for number in range(20)]
    assert len({tuple(each) for each in seeds}) > 3
