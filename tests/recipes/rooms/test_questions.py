"""Facts of questions and answers, and captions from them."""

import pytest

from recipes.rooms.questions import extract_facts, statements
from tests.recipes.rooms.contents import KNOWN


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
    assert sentence in statements(extract_facts([(question, answer)], KNOWN | {"chairs", "around"}), ["room"])


def test_colours_and_counts_are_assigned_to_their_nouns() -> None:
    asked = [
        ("what is the colour of the table?", "white"),
        ("how many chairs are there?", "2"),
        ("how many doors are there?", "1"),
    ]
    found = statements(extract_facts(asked, KNOWN | {"chairs", "doors"}), ["bedroom", "room"])
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
def test_questions_and_answers_of_no_known_pattern_give_no_caption(question: str, answer: str) -> None:
    assert statements(extract_facts([(question, answer)], KNOWN), ["room"]) == []


def test_contradicting_answers_cancel_out() -> None:
    asked = [("how many chairs are there?", "2"), ("how many chairs are there?", "4")]
    assert extract_facts(asked, KNOWN | {"chairs"}).counts == {}
