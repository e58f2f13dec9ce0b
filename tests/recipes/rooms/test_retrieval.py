"""Captions of other photographs are retrieved if the evidence confirms all their claims."""

import pytest

from recipes.rooms.evidence import Evidence
from recipes.rooms.retrieval import CaptionPool, noun_finder
from smart_caption_ros.grounding.word_vectors import WordVectors
from tests.recipes.rooms.contents import BEDROOM


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    return WordVectors.load()


def fitting(vectors: WordVectors, captions: list[str], evidence: Evidence, wanted: int = 5) -> list[str]:
    return CaptionPool(captions, noun_finder(), vectors).retrieve(evidence, wanted)


@pytest.mark.parametrize(
    "caption",
    [
        "A bed next to a table in a bedroom.",  # no table
        "A bed and a window in a kitchen.",  # another place
        "Two beds next to a window in a bedroom.",  # one bed
        "A man sitting on a bed near a window.",  # nobody
        "A cat sleeping on a bed near a window.",
        "A bed that burns next to a window.",
        "Three chairs and a bed next to a window.",
        "A bed in a bedroom in a house.",  # one thing alone
    ],
)
def test_a_caption_that_does_not_fit_is_not_retrieved(caption: str, vectors: WordVectors) -> None:
    assert fitting(vectors, [caption], BEDROOM) == []


def test_captions_that_name_more_come_first_and_none_is_repeated(vectors: WordVectors) -> None:
    found = fitting(
        vectors,
        [
            "A bed next to a window in a room.",
            "A bedroom with a bed, a chair and a window.",
            "A bedroom with a chair, a bed and a window.",
        ],
        BEDROOM,
    )
    assert found[0] in ("a bedroom with a bed, a chair and a window", "a bedroom with a chair, a bed and a window")
    assert len([sentence for sentence in found if "chair" in sentence]) == 1


def test_unconfirmed_colours_and_opinions_are_removed(vectors: WordVectors) -> None:
    found = fitting(vectors, ["A lovely green bed next to a window in a bedroom."], BEDROOM)
    assert found == ["a bed next to a window in a bedroom"]


def test_a_caption_is_retrieved_40_times_at_most(vectors: WordVectors) -> None:
    pool = CaptionPool(["A bed next to a window in a bedroom."], noun_finder(), vectors)
    uses = [bool(pool.retrieve(BEDROOM, 5)) for _ in range(50)]
    assert sum(uses) == 40
    assert not uses[-1]
