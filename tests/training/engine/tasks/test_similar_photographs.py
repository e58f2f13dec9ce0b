"""Comparison of the training photographs of a run with each other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.training.small_flickr8k import write_config
from training.data.tokenized_captions import TokenizedCaptions
from training.engine.experiment import load_run
from training.engine.tasks.captioning import CaptioningTask
from training.engine.tasks.similar_photographs import compare_captions
from training.engine.trainer import Trainer

IMAGES = ["a/1", "a/2", "a/3", "b/1", "b/2", "a/1", "a/2", "a/3"]  # source a is repeated
GROUPS = [["a/1", "a/2", "a/3"], ["b/1", "b/2"]]
POINTS = {"a/1": [1, 0], "a/2": [0.9, 0.3], "a/3": [0, 1], "b/1": [1, 0.01], "b/2": [0, 2]}
WORDS = TokenizedCaptions.from_words([[["dog", image], ["the", "dog"]] for image in POINTS]).select(
    [list(POINTS).index(image) for image in IMAGES]
)


class Points:
    """Visual inputs whose mean tokens are given."""

    def __init__(self, key: str = "") -> None:
        self.computed: list[int] = []
        self._key = key

    def pooled(self, images: np.ndarray) -> NDArray[np.float32]:
        self.computed += images.tolist()
        return np.array([POINTS[IMAGES[image]] for image in images], np.float32)

    def pooled_key(self) -> list[Any]:
        return [self._key]


def compare(cache: Path, inputs: Points, groups: Sequence[Sequence[str]] = GROUPS) -> Any:
    return compare_captions(cache, inputs, IMAGES, groups, WORDS)  # type: ignore[arg-type]


def test_similar_photographs_are_of_the_same_source_and_never_the_photograph_itself(tmp_path: Path) -> None:
    found = compare(tmp_path, Points())
    assert found.similar.tolist() == [[1, 2], [0, 2], [1, 0], [4, -1], [3, -1], [1, 2], [0, 2], [1, 0]]
    assert np.array_equal(found.cider_btw[:3], found.cider_btw[5:])
    assert found.counts.tolist() == [2] * 8


def test_a_photograph_is_computed_once_and_the_result_is_kept(tmp_path: Path) -> None:
    first, second, other = Points(), Points(), Points("other weights")
    expected, found = compare(tmp_path, first), compare(tmp_path, second)
    assert first.computed == [0, 1, 2, 3, 4]
    assert second.computed == []
    assert all(np.array_equal(value, vars(found)[name]) for name, value in vars(expected).items())
    compare(tmp_path, other)
    assert other.computed


def test_a_damaged_file_is_computed_again(tmp_path: Path) -> None:
    expected = compare(tmp_path, Points())
    (file,) = tmp_path.glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-9])
    assert np.array_equal(compare(tmp_path, Points()).cider_btw, expected.cider_btw)


@pytest.mark.parametrize("options", [{"cider_btw_weighting": 0.3}, {}])
def test_a_run_compares_its_photographs_where_a_phase_needs_it(
    data: Path, tmp_path: Path, options: dict[str, float]
) -> None:
    phase = {"name": "p", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 6, **options}
    config = load_run(write_config(tmp_path / "config.yaml", phases=[phase]))
    task = Trainer(config, data, tmp_path / "run", tmp_path / "features").task
    assert isinstance(task, CaptioningTask)
    files = list((tmp_path / "features").glob("distinctiveness-*"))
    assert len(files) == bool(options)
    if options:
        found = task.captions.distinctiveness
        assert found is not None
        assert found.similar.shape == (12, 5)
        assert (found.similar != np.arange(12)[:, None]).all()
        assert found.cider_btw.max() > 0
