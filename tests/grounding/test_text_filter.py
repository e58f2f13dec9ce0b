"""A text is new if it speaks of other things."""

from smart_caption_ros.grounding.text_filter import TextFilter


def test_the_same_nouns_in_other_words_are_nothing_new():
    texts = TextFilter()
    said = [
        texts.is_new(text, lemmas)
        for text, lemmas in (
            ("a dog on a couch", ["dog", "couch"]),
            ("a couch with two dogs", ["couch", "dog"]),
            ("a brown dog lying on a couch", ["dog", "couch"]),
            ("a dog next to a chair", ["dog", "chair"]),
            ("a dog on a couch", ["dog", "couch"]),
        )
    ]
    assert said == [True, False, False, True, True]


def test_without_nouns_the_words_are_compared():
    texts = TextFilter()
    assert [texts.is_new(text, ()) for text in ("a dog", "a dog", "the dog")] == [True, False, True]


def test_what_was_new_a_short_time_ago_is_not_new_again():
    texts = TextFilter(quiet_s=10.0)
    steps = [
        *((0.0, "a", True), (1.0, "b", True), (2.0, "a", False), (9.0, "c", True), (9.5, "a", False)),
        *((10.5, "a", True), (11.5, "b", True), (5.0, "b", False), (4.0, "a", True)),
    ]
    assert [texts.is_new(text, [text], time_s) for time_s, text, _ in steps] == [is_new for *_, is_new in steps]


def test_what_is_forgotten_is_new_again():
    texts = TextFilter()
    assert texts.is_new("a dog", ["dog"])
    texts.forget()
    assert texts.is_new("a dog", ["dog"])
