"""The rules by which words become captions."""

from pathlib import Path

import numpy as np
import pytest

from smart_caption_ros.grounding.word_vectors import WordVectors
from training.data.tokenizer import tokenize
from training.datagen.rooms import grammar
from training.datagen.rooms.descriptions import joined
from training.datagen.rooms.evidence import Evidence, weigh
from training.datagen.rooms.photographs import RoomsData
from training.datagen.rooms.questions import statements, understand
from training.datagen.rooms.retrieval import Pool, noun_finder
from training.datagen.rooms.teachers import (
    DETECTOR,
    SEGMENTER,
    Seen,
    SeenArea,
    SeenObject,
    Teachers,
    colour_name,
    decoded,
)
from training.datagen.rooms.words import SUPPORT, plural, singular, with_article

WORDS = frozenset(
    tokenize(
        """there is are a an the sink under window walls white blue chair two four table lamp book on next to bed in of
        front room bedroom kitchen with couch trash can this large rug picture wall door nightstand pillow it has"""
    )
)


def objects(*found: tuple[str, float, tuple[float, float, float, float]], colour: str = "") -> tuple[SeenObject, ...]:
    return tuple(SeenObject(name, score, box, colour) for name, score, box in found)


def areas(**shares: float) -> tuple[SeenArea, ...]:
    return tuple(SeenArea(name, share, "white") for name, share in shares.items())


LEFT, RIGHT = (0.0, 0.0, 0.3, 0.5), (0.6, 0.0, 0.9, 0.5)


@pytest.mark.parametrize(
    ("sentences", "caption"),
    [
        (["There is a sink under the window."], "a kitchen with a sink under the window"),
        (["The walls are white.", "There are two chairs."], "a kitchen with white walls and two chairs"),
        (["The room has a large blue rug"], "a kitchen with a large blue rug"),
        (["The lamp sits on a table."], "a kitchen with a lamp on a table"),
    ],
)
def test_human_sentences_are_joined_with_the_place(sentences: list[str], caption: str) -> None:
    words = WORDS | {"chairs", "sits"}
    assert caption in joined(sentences, ["kitchen", "room"], words)


@pytest.mark.parametrize("sentence", ["It looks like a kitchen.", "There is a snik under the window.", "I see a bed."])
def test_guesses_and_slips_of_the_pen_are_left_out(sentence: str) -> None:
    assert joined([sentence], ["kitchen"], WORDS) == []


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        ("what is on the table?", "lamp, book", "a lamp and a book on a table in a room"),
        ("what is on the right side of the bed?", "night_stand", "a nightstand next to a bed in a room"),
        ("what is beneath the lamp?", "table", "a lamp on a table in a room"),
        ("how many chairs are around the table?", "4", "four chairs around a table in a room"),
        ("what is behind the sofa?", "lamp", "a lamp behind a couch in a room"),
    ],
)
def test_a_question_and_its_answer_become_a_statement(question: str, answer: str, sentence: str) -> None:
    assert sentence in statements(understand([(question, answer)], WORDS | {"chairs", "around"}), ["room"])


def test_colours_and_counts_are_said_of_the_right_things() -> None:
    asked = [
        ("what is the colour of the table?", "white"),
        ("how many chairs are there?", "2"),
        ("how many doors are there?", "1"),
    ]
    found = statements(understand(asked, WORDS | {"chairs", "doors"}), ["bedroom", "room"])
    assert found[0] == "a bedroom with a white table, a door and two chairs"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what is left of the table next to the red chair in the corner?", "lamp"),  # which table?
        ("what is the object?", "lamp"),
        ("what is on the table?", "qwertz"),
        ("what color is the table?", "1"),
        ("how many chairs are there?", "red"),
    ],
)
def test_what_cannot_be_understood_is_not_said(question: str, answer: str) -> None:
    assert statements(understand([(question, answer)], WORDS), ["room"]) == []


def test_contradicting_answers_cancel_out() -> None:
    asked = [("how many chairs are there?", "2"), ("how many chairs are there?", "4")]
    assert understand(asked, WORDS | {"chairs"}).counts == {}


def test_thing_in_a_strange_place_needs_both_teachers() -> None:
    bed = areas(bed=0.1)
    assert "bed" in weigh("bedroom", Seen((), bed)).sure
    assert "bed" not in weigh("kitchen", Seen((), bed)).nouns
    assert "bed" in weigh("kitchen", Seen(objects(("bed", 0.45, LEFT)), bed)).sure


def test_a_box_has_one_name() -> None:
    both = objects(("television", 0.9, LEFT), ("laptop", 0.7, LEFT), ("book", 0.8, RIGHT))
    found = weigh("office", Seen(both, ()))
    assert "television" in found.nouns
    assert "laptop" not in found.nouns
    assert "book" in found.nouns


@pytest.mark.parametrize(
    ("scene", "indoors"),
    [("kitchen", True), ("waiting room", True), ("bus interior", False), ("office building", False), ("street", False)],
)
def test_a_name_tells_what_is_inside(scene: str, indoors: bool) -> None:
    assert weigh(scene, Seen((), ())).indoors is indoors


def test_a_place_without_a_telling_name_is_judged_by_what_is_seen() -> None:
    assert weigh("misc", Seen((), areas(wall=0.4, ceiling=0.2))).indoors
    assert not weigh("misc", Seen((), areas(building=0.4, sky=0.4))).indoors


def test_a_room_is_named_by_what_is_in_it() -> None:
    assert weigh("", Seen((), ()), ["bed"]).rooms[0] == "bedroom"
    assert weigh("", Seen((), ()), ["bed", "toilet"]).rooms[0] == "room"
    assert weigh("", Seen((), ()), ["chair"]).rooms[0] == "room"


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    return WordVectors.load()


def fitting(vectors: WordVectors, captions: list[str], evidence: Evidence, wanted: int = 5) -> list[str]:
    return Pool(captions, noun_finder(), vectors).fitting(evidence, wanted)


BEDROOM = weigh("bedroom", Seen(objects(("bed", 0.9, LEFT), ("chair", 0.8, RIGHT)), areas(wall=0.3, windowpane=0.1)))


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


def test_fitting_captions_come_by_what_they_cover_without_repetition(vectors: WordVectors) -> None:
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
    assert len([each for each in found if "chair" in each]) == 1


def test_unseen_colours_are_left_out_and_opinions_too(vectors: WordVectors) -> None:
    found = fitting(vectors, ["A lovely green bed next to a window in a bedroom."], BEDROOM)
    assert found == ["a bed next to a window in a bedroom"]


def test_a_sentence_is_not_used_for_ever(vectors: WordVectors) -> None:
    pool = Pool(["A bed next to a window in a bedroom."], noun_finder(), vectors)
    uses = [bool(pool.fitting(BEDROOM, 5)) for _ in range(50)]
    assert sum(uses) == 40
    assert not uses[-1]


def test_grammar_names_what_is_sure_and_repeats_itself() -> None:
    found = grammar.sentences(BEDROOM, 3, "seed")
    assert found == grammar.sentences(BEDROOM, 3, "seed")
    assert found
    for sentence in found:
        assert "bed" in sentence
        assert "table" not in sentence


def test_grammar_is_silent_in_the_open_air_and_where_little_is_seen() -> None:
    assert grammar.sentences(weigh("street", Seen(objects(("chair", 0.9, LEFT), ("bed", 0.9, RIGHT)), ())), 3, "") == []
    assert grammar.sentences(weigh("misc", Seen((), areas(wall=0.5, floor=0.3))), 3, "") == []


@pytest.mark.parametrize(
    ("bgr", "name"),
    [
        ((5, 5, 5), "black"),
        ((230, 230, 230), "white"),
        ((30, 30, 200), "red"),
        ((200, 60, 20), "blue"),
        ((30, 70, 110), "brown"),
    ],
)
def test_colours_have_plain_names(bgr: tuple[int, int, int], name: str) -> None:
    assert colour_name(np.full((9, 3), bgr, np.uint8)) == name


@pytest.mark.parametrize(
    ("one", "many"), [("knife", "knives"), ("box", "boxes"), ("glass", "glasses"), ("couch", "couches")]
)
def test_singular_and_plural_belong_together(one: str, many: str) -> None:
    assert plural(one) == many
    assert singular(many) == one


def test_articles_follow_the_noun() -> None:
    assert with_article("oven") == "an oven"
    assert with_article("books") == "books"
    assert with_article("roll of paper") == "a roll of paper"
    assert with_article("scissors") == "a pair of scissors"


@pytest.mark.needs_data
def test_classes_that_support_nouns_are_the_teachers_own(data_dir: Path) -> None:
    from smart_caption_ros.detection.class_names import COCO_CLASSES
    from training.datagen.rooms.teachers import class_names

    of_segmenter = set(class_names(data_dir / "detectors" / "ade20k_classes.txt"))
    named = {name for classes in SUPPORT.values() for name in classes}
    assert {name for name in named if not name.startswith("@")} <= of_segmenter
    assert {name[1:] for name in named if name.startswith("@")} <= set(COCO_CLASSES)


@pytest.mark.needs_data
def test_real_teachers_see_a_bed_in_a_real_bedroom(data_dir: Path, tmp_path: Path) -> None:
    assert (data_dir / "detectors" / DETECTOR).is_file()
    assert (data_dir / "detectors" / SEGMENTER).is_file()
    data = RoomsData.open(data_dir)
    bedroom = next(each for each in data.photographs if each.id == "scenes-000144")
    seen = Teachers(data_dir / "detectors", tmp_path).see(decoded(*next(iter(data.encoded([bedroom])))))
    assert {"bed", "wall", "ceiling"} <= {area.name for area in seen.areas}
