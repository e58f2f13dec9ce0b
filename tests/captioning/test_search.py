"""The settings of the search as a manifest has them."""

import pytest

from smart_caption_ros.captioning.search import Search

PUBLISHED = Search(
    3, 20, (), min_words=4, length_penalty=1.0, finished="apart", no_repeat_ngram=3, forced_begin=(7,), forced_end=True
)


def test_settings_come_back_from_json_and_missing_ones_have_their_defaults():
    assert Search.from_json(PUBLISHED.as_json()) == PUBLISHED
    assert Search.from_json({"beam_size": 2, "max_words": 7, "unknown": 1}) == Search(2, 7)
    assert Search.from_json({"end_penalty": 2}).end_penalty == 2


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"beam_size": 0}, "beam_size must be at least 1"),
        ({"beam_size": True}, "beam_size must be like 5, not True"),
        ({"max_words": "20"}, "max_words must be like 20"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram must be at least 0"),
        ({"end_penalty": float("nan")}, "end_penalty must be a number, not nan"),
        ({"forced_end": 1}, "forced_end must be like False"),
        ({"forbidden": [0, "1"]}, "forbidden must be like"),
        ({"length_penalty": None}, "length_penalty must be like 0.0"),
        ({"length_penalty": 1.0}, "length_penalty needs finished apart"),
        ({"min_words": 21}, "min_words 21 is more than max_words 20"),
        ({"finished": "elsewhere"}, "finished must be in_beams or apart"),
    ],
)
def test_wrong_settings_are_refused(wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        Search.from_json(wrong)
