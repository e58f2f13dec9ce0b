"""Truth of captions by exhaustive lists of things, and the data set of training.evaluate that has them."""

import numpy as np
import pytest

from tests.training.small_looked_at import make_looked_at
from training.data.looked_at import LookedAt
from training.data.things import Things
from training.evaluation.comparison import Comparison, ModelCaptions
from training.evaluation.metrics.truth import ShownThings, truth
from training.evaluation.references import References


def test_absent_things_count_by_caption_and_by_name():
    shown = ShownThings.of(
        Things(["bed", "lamp", "dog"]), {"a": ["bed"], "b": ["lamp"], "c": []}, {"a": [], "b": ["a dog"], "c": []}
    )
    absent, there = truth({"a": "a bed and a lamp", "b": "a dog by a lamp", "c": "it is dark"}, shown)
    assert (absent.value, there.value) == (pytest.approx(1 / 3), pytest.approx(3 / 4))
    np.testing.assert_array_equal(absent.per_image, [1, 0, 0])
    np.testing.assert_array_equal(there.per_image, [0.5, 1, np.nan])


def test_looked_at_is_judged_by_its_lists_and_by_kinds_of_places(tmp_path):
    references = References.of_dataset("looked_at", LookedAt().open(make_looked_at(tmp_path)), "dev")
    said = {"looked_at/c.jpg": "a couch and a lamp", "looked_at/d.jpg": "a bed with a laptop"}
    comparison = Comparison.of(references, {"model": ModelCaptions("file", said)}, rule="words")
    scores = comparison.evaluation.models["model"].metrics
    assert (scores["captions_with_absent"].value, scores["named_things_there"].value) == (0.5, 0.75)
    homes = comparison.evaluation.domains["homes seen by a robot"].models["model"].metrics
    assert homes["captions_with_absent"].value == 0
