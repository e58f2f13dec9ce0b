"""JSON for strict readers."""

import json
import math

import numpy as np
import pytest

from smart_caption_ros.json_text import json_text, rounded


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_numbers_that_json_lacks_are_null_wherever_they_stand(number):
    value = {"a": number, "b": [1.5, {"c": (number, "x")}], "d": True, "e": 7}
    assert json.loads(json_text(value), parse_constant=refuse) == {
        "a": None,
        "b": [1.5, {"c": [None, "x"]}],
        "d": True,
        "e": 7,
    }
    assert rounded(number) is None


def test_lone_surrogates_are_escaped_and_pairs_stay():
    value = {"caf\udce9": "\ud800 \\ud800 \U0001f600"}
    for settings in ({}, {"ensure_ascii": False}):
        read = json.loads(json_text(value, **settings))
        assert read == {"caf\\udce9": "\\ud800 \\ud800 \U0001f600"}
