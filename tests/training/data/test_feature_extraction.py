"""Tokens of regions and conversion of published features."""

import numpy as np
import pytest

from tests.training.region_files import SIZE, WIDTH, regions, write_hdf5, write_npz, write_tsv
from training.configs.schema import FeaturesConfig
from training.data.feature_extraction import convert_features, pool_regions
from training.data.feature_store import FeatureStore
from training.data.stored_features import open_features, open_stored_features
from training.errors import DataError

MAX_REGIONS = 50
GRID, WIDTH_PX, HEIGHT_PX = (3, 4), 80, 60
CELLS = np.arange(12, dtype=np.float32)[:, None]
"""Each token is the number of its cell; cells are 20 pixels wide and high."""


def pooled(*boxes):
    tokens, _ = pool_regions(CELLS, GRID, boxes, WIDTH_PX, HEIGHT_PX)
    return [round(float(token), 4) for token in tokens[:, 0]]


def test_the_first_token_is_the_mean_of_the_photograph_and_is_there_without_regions():
    tokens, boxes = pool_regions(CELLS, GRID, [], WIDTH_PX, HEIGHT_PX)
    assert tokens.tolist() == [[5.5]]
    assert boxes.tolist() == [[0, 0, WIDTH_PX, HEIGHT_PX]]


def test_cells_are_weighted_by_the_area_that_the_region_covers():
    assert pooled((20, 20, 40, 40), (0, 0, 40, 20), (10, 0, 25, 20))[1:] == [5, 0.5, round(0.25 / 0.75, 4)]
    assert pooled((65, 50, 66, 51))[1:] == [11]  # smaller than a cell


WRITERS = {"hdf5": write_hdf5, "tsv": write_tsv, "npz": write_npz}
every_format = pytest.mark.parametrize("kind", sorted(WRITERS))


def images(count=7):
    return {f"{image}": regions(2 + 10 * image, seed=image) for image in range(count)}


@every_format
def test_a_converted_store_has_what_the_files_have(tmp_path, kind):
    path = WRITERS[kind](tmp_path, images())
    report = convert_features(kind, [path], tmp_path / "store", WIDTH, MAX_REGIONS, save_every=3)
    assert (report.stored, report.broken) == (7, [])
    store, published = FeatureStore(tmp_path / "store"), open_features(kind, [path], WIDTH, MAX_REGIONS)
    assert sorted(store.images()) == sorted(published.images())
    for image in store.images():
        found, expected = store.read(image), published.read(image)
        np.testing.assert_array_equal(found.features, expected.features.astype(np.float16))
        np.testing.assert_allclose(found.boxes_xyxy, expected.boxes_xyxy, rtol=1e-6)
        assert found.image_size == SIZE


def test_broken_images_are_left_out_and_named_and_a_second_run_adds_them_once_repaired(tmp_path):
    intact = images(3)
    path = write_npz(tmp_path, {**intact, "1": {**intact["1"], "features": np.full((2, WIDTH), np.nan)}})
    (path / "2.npz").write_bytes(b"no npz")
    first = convert_features("npz", [path], tmp_path / "store", WIDTH, MAX_REGIONS)
    assert first.stored == 1
    assert ["image 1: features contain NaN" in first.broken[0], "image 2: not an npz file" in first.broken[1]] == [
        True
    ] * 2
    np.savez(path / "2.npz", **intact["2"])
    assert convert_features("npz", [path], tmp_path / "store", WIDTH, MAX_REGIONS).stored == 2
    assert FeatureStore(tmp_path / "store").images() == ["0", "2"]


def test_files_without_features_are_refused(tmp_path):
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="nothing: no features in it"):
        convert_features("npz", [tmp_path / "nothing"], tmp_path / "store", WIDTH, MAX_REGIONS)


def test_a_store_trains_an_experiment_of_as_many_regions_alone(tmp_path):
    path = write_npz(tmp_path, {"1": regions(8)})
    for kept in (0, 5):
        convert_features("npz", [path], tmp_path / f"store{kept}", WIDTH, kept)
        assert len(FeatureStore(tmp_path / f"store{kept}").read("1").features) == (kept or 8)
        for wanted in (0, 5, 6):
            config = FeaturesConfig(store=f"store{kept}", npz="x", width=WIDTH, max_regions=wanted)
            if wanted == kept:
                open_stored_features(config, tmp_path)
            else:
                with pytest.raises(DataError, match=r"store\d has (all|the first 5) regions .*max_regions of the exp"):
                    open_stored_features(config, tmp_path)
