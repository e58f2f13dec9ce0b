"""Comparison of the training photographs of a run with each other."""

import numpy as np
import pytest

from tests.training.small_runs import new_trainer
from training.evaluation.similar_images import find_similar_photographs

IMAGES = ["a/1", "a/2", "a/3", "b/1", "b/2", "a/1", "a/2", "a/3"]  # source a is repeated
SOURCES = {image: image[0] for image in IMAGES}
POINTS = {"a/1": [1, 0], "a/2": [0.9, 0.3], "a/3": [0, 1], "b/1": [1, 0.01], "b/2": [0, 2]}


class Points:
    """Visual inputs whose mean tokens are given."""

    def __init__(self, key=""):
        self.computed = []
        self._key = key

    def pooled(self, images):
        self.computed += images.tolist()
        return np.array([POINTS[IMAGES[image]] for image in images], np.float32)

    def pooled_key(self):
        return [self._key]


def find(cache, inputs):
    return find_similar_photographs(cache, inputs, IMAGES, SOURCES).tolist()


def test_similar_photographs_are_of_the_same_source_and_never_the_photograph_itself(tmp_path):
    assert find(tmp_path, Points()) == [[1, 2], [0, 2], [1, 0], [4, -1], [3, -1], [1, 2], [0, 2], [1, 0]]


def test_a_photograph_is_computed_once_and_the_result_is_kept(tmp_path):
    first, second, other = Points(), Points(), Points("other weights")
    assert find(tmp_path, first) == find(tmp_path, second)
    assert first.computed == [0, 1, 2, 3, 4]
    assert second.computed == []
    find(tmp_path, other)
    assert other.computed


@pytest.mark.parametrize("share", [0.3, 0.0])
def test_a_run_compares_its_photographs_where_a_phase_needs_it(data, tmp_path, share):
    phase = {"name": "p", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 6, "objective": "self_critical"}
    captioning = new_trainer(tmp_path, data, {**phase, "cider_btw_reward": share}, cache=tmp_path / "features").task
    assert len(list((tmp_path / "features").glob("similar-*"))) == bool(share)
    found = captioning.captions.similar
    if share:
        assert found.shape == (12, 5)
        assert (found != np.arange(12)[:, None]).all()
    else:
        assert found is None
