"""Features of photographs of several sources: each has its own file, which other mixtures share."""

from pathlib import Path

import numpy as np
import pytest
import torch

from training.data.grid_features import GridFeatures, features_of_photographs, fingerprint
from training.data.mixture import Mixture, Source

WIDTH = 8


class Drawn:
    """Six photographs of a shade of grey each."""

    def __init__(self, shade: int) -> None:
        self.shade = shade
        self.captions = {f"{index}.jpg": ["a caption"] for index in range(6)}

    def split(self, name: str) -> list[str]:
        return list(self.captions)

    def groups(self, images: list[str]) -> list[list[str]]:
        return [list(dict.fromkeys(images))]

    def read_images(self, names: list[str], size: int = 4) -> np.ndarray:
        return np.full((len(names), size, size, 3), self.shade, np.uint8)


def mixture(**sources: Source) -> Mixture:
    return Mixture(sources, scored=list(sources))  # type: ignore[arg-type]


def values(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.float16)[:, None].repeat(WIDTH, axis=1)


def views(images: list[int], mirrored: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(images), np.array(mirrored)


def test_each_source_has_a_file_and_an_image_that_occurs_twice_has_one_row(tmp_path: Path) -> None:
    dataset = mixture(a=Source(Drawn(1), repeat=2), b=Source(Drawn(2)))
    images = dataset.split("train")
    features = features_of_photographs(tmp_path, dataset, images, ["facts"], WIDTH, 2)
    assert len(list(tmp_path.iterdir())) == 2
    some = views([3, 14, 9, 0], [0, 1, 1, 0])  # a/3, b/2 mirrored, a/3 again and mirrored, a/0
    features.write(*some, values(30, 141, 31, 0))
    found, computed = features.read(*views([9, 14, 3, 0, 1], [0, 1, 1, 0, 0]))
    assert computed.tolist() == [True, True, True, True, False]
    np.testing.assert_array_equal(found[:4], values(30, 141, 31, 0))
    # A run on one of the sources finds the features of that source.
    alone = mixture(b=Source(Drawn(2)))
    same = features_of_photographs(tmp_path, alone, alone.split("train"), ["facts"], WIDTH, 2)
    assert same.read(*views([2, 3], [1, 1]))[1].tolist() == [True, False]


@pytest.mark.parametrize("change", ["facts", "photographs", "slots"])
def test_features_of_something_else_are_in_another_file(tmp_path: Path, change: str) -> None:
    def written(dataset: Drawn, facts: str, slots: int) -> GridFeatures:
        return features_of_photographs(tmp_path, dataset, dataset.split("train"), [facts], WIDTH, slots)  # type: ignore[arg-type]

    written(Drawn(1), "facts", 1).write(*views([0], [0]), values(5))
    other = written(
        Drawn(2 if change == "photographs" else 1),
        "others" if change == "facts" else "facts",
        2 if change == "slots" else 1,
    )
    assert not other.read(*views([0], [0]))[1].any()
    assert written(Drawn(1), "facts", 1).read(*views([0], [0]))[1].all()


def test_the_fingerprint_is_of_the_weights_that_do_not_learn() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    network[0].requires_grad_(False)
    first = fingerprint(network)
    with torch.no_grad():
        network[1].weight.add_(1)
    assert fingerprint(network) == first
    with torch.no_grad():
        network[0].weight.add_(1)
    assert fingerprint(network) != first
