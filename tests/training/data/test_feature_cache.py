"""Cached features of views."""

import os
import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import torch

from training.data import feature_cache
from training.data.feature_cache import FeatureCache, GridFeatures, features_of_photographs, fingerprint
from training.data.mixture import Mixture, Source
from training.errors import DataError

ROWS, WIDTH = 600, 40
FEATURES = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float16)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "some.features"


def test_rows_are_missing_until_they_are_written(path: Path) -> None:
    cache, rows = FeatureCache(path, ROWS, WIDTH), np.array([599, 0, 7])
    assert not cache.read(rows)[1].any()
    cache.write(rows[:2], FEATURES[rows[:2]])
    values, computed = cache.read(rows)
    assert computed.tolist() == [True, True, False]
    assert values.dtype == np.float16
    np.testing.assert_array_equal(values[:2], FEATURES[rows[:2]])


def test_another_process_reads_what_one_has_written(path: Path) -> None:
    mine, other = FeatureCache(path, ROWS, WIDTH), FeatureCache(path, ROWS, WIDTH)
    mine.write(np.array([3]), FEATURES[[3]])
    other.write(np.array([4]), FEATURES[[4]])
    for cache in (mine, other, FeatureCache(path, ROWS, WIDTH)):
        values, computed = cache.read(np.array([3, 4]))
        assert computed.all()
        np.testing.assert_array_equal(values, FEATURES[[3, 4]])


@pytest.mark.parametrize("byte", [0, 1, 2 * WIDTH - 1])
def test_a_row_whose_bytes_are_not_all_written_is_missing(path: Path, byte: int) -> None:
    FeatureCache(path, ROWS, WIDTH).write(np.array([8, 9]), FEATURES[[8, 9]])
    place = path.stat().st_size - (ROWS - 8) * 2 * WIDTH + byte
    with path.open("r+b") as stream:
        stream.seek(place)
        value = stream.read(1)
        stream.seek(place)
        stream.write(bytes([value[0] ^ 1]))
    assert FeatureCache(path, ROWS, WIDTH).read(np.array([8, 9]))[1].tolist() == [False, True]


def test_a_row_that_another_process_is_replacing_is_missing_though_it_was_read_before(path: Path) -> None:
    cache, row = FeatureCache(path, ROWS, WIDTH), np.array([8])
    cache.write(row, FEATURES[row])
    assert cache.read(row)[1].all()
    with path.open("r+b") as stream:  # as a reader sees it that has the record of before, and bytes of the new row
        stream.seek(-(ROWS - 8) * 2 * WIDTH, os.SEEK_END)
        stream.write(FEATURES[9, : WIDTH // 2].tobytes())
    assert not cache.read(row)[1].any()


def test_a_file_of_another_size_is_made_anew(path: Path) -> None:
    FeatureCache(path, ROWS, WIDTH).write(np.array([1]), FEATURES[[1]])
    os.truncate(path, path.stat().st_size - 1)
    assert not FeatureCache(path, ROWS, WIDTH).read(np.array([1]))[1].any()


def test_the_space_is_announced_once_and_reserved(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FeatureCache(path, ROWS, 4096)
    FeatureCache(path, ROWS, 4096)
    assert capsys.readouterr().err == f"features are kept in {path}: 4.9 MB\n"
    assert path.stat().st_blocks * 512 >= ROWS * 4096 * 2
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_disk_without_room_is_refused_and_nothing_is_left(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**6, 10**6 - 10**4, 10**4))
    with pytest.raises(DataError, match=r"some\.features: the features need 0\.1 MB, but 0\.0 MB are free there;"):
        FeatureCache(path, ROWS, WIDTH)
    assert not list(path.parent.iterdir())


def test_a_disk_that_fills_up_while_the_space_is_reserved_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(feature_cache.os, "posix_fallocate", full)
    with pytest.raises(DataError, match="the features need"):
        FeatureCache(path, ROWS, WIDTH)
    assert not list(path.parent.iterdir())


GRID_WIDTH = 8


class Drawn:
    """Six photographs of a shade of grey each."""

    def __init__(self, shade: int) -> None:
        self.shade = shade
        self.captions = {f"{index}.jpg": ["a caption"] for index in range(6)}

    def split(self, name: str) -> list[str]:
        return list(self.captions)

    def groups(self, images: list[str]) -> list[list[str]]:
        return [list(dict.fromkeys(images))]

    def read_image(self, name: str) -> np.ndarray:
        return np.full((4, 4, 3), self.shade, np.uint8)

    def read_images(self, names: list[str]) -> np.ndarray:
        return np.stack([self.read_image(name) for name in names])


def mixture(**sources: Source) -> Mixture:
    return Mixture(sources, scored=list(sources))  # type: ignore[arg-type]


def values(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.float16)[:, None].repeat(GRID_WIDTH, axis=1)


def views(images: list[int], mirrored: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(images), np.array(mirrored)


def test_each_source_has_a_file_and_an_image_that_occurs_twice_has_one_row(tmp_path: Path) -> None:
    dataset = mixture(a=Source(Drawn(1), repeat=2), b=Source(Drawn(2)))
    images = dataset.split("train")
    features = features_of_photographs(tmp_path, dataset, images, ["facts"], GRID_WIDTH, 2)
    assert len(list(tmp_path.iterdir())) == 2
    some = views([3, 14, 9, 0], [0, 1, 1, 0])  # a/3, b/2 mirrored, a/3 again and mirrored, a/0
    features.write(*some, values(30, 141, 31, 0))
    found, computed = features.read(*views([9, 14, 3, 0, 1], [0, 1, 1, 0, 0]))
    assert computed.tolist() == [True, True, True, True, False]
    np.testing.assert_array_equal(found[:4], values(30, 141, 31, 0))
    # A run on one of the sources finds the features of that source.
    alone = mixture(b=Source(Drawn(2)))
    same = features_of_photographs(tmp_path, alone, alone.split("train"), ["facts"], GRID_WIDTH, 2)
    assert same.read(*views([2, 3], [1, 1]))[1].tolist() == [True, False]


@pytest.mark.parametrize("change", ["facts", "photographs", "slots"])
def test_features_of_something_else_are_in_another_file(tmp_path: Path, change: str) -> None:
    def written(dataset: Drawn, facts: str, slots: int) -> GridFeatures:
        return features_of_photographs(tmp_path, dataset, dataset.split("train"), [facts], GRID_WIDTH, slots)  # type: ignore[arg-type]

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
