"""Published features become a store with the same regions, boxes and image sizes."""

from pathlib import Path

import numpy as np
import pytest

from tests.training.region_files import SIZE, WIDTH, Arrays, fractions, regions, write_hdf5, write_npz, write_tsv
from training.data.feature_conversion import convert_features
from training.data.feature_formats import open_features
from training.data.feature_store import FeatureStore
from training.data.region_features import MAX_REGIONS
from training.errors import DataError

WRITERS = {"hdf5": write_hdf5, "tsv": write_tsv, "npz": write_npz}
every_format = pytest.mark.parametrize("kind", sorted(WRITERS))


def images(count: int = 7) -> dict[str, Arrays]:
    return {f"{image}": regions(2 + 10 * image, seed=image) for image in range(count)}


@every_format
def test_a_converted_store_has_what_the_files_have(tmp_path: Path, kind: str) -> None:
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


@pytest.mark.parametrize("kind", ["hdf5", "npz"])
def test_what_the_files_lack_is_unknown_in_the_store(tmp_path: Path, kind: str) -> None:
    pixels = regions(3)
    path = WRITERS[kind](
        tmp_path,
        {
            "pixels": pixels,
            "fractions": {**pixels, "boxes": fractions(pixels["boxes"])},
            "none": {"features": pixels["features"]},
        },
        None,
    )
    convert_features(kind, [path], tmp_path / "store", WIDTH, MAX_REGIONS)
    store = FeatureStore(tmp_path / "store")
    assert {image: store.read(image).image_size for image in store.images()} == dict.fromkeys(store.images())
    assert {image: store.read(image).boxes_xyxy is None for image in ("pixels", "fractions", "none")} == {
        "pixels": True, "fractions": False, "none": True,
    }  # fmt: skip
    np.testing.assert_array_equal(store.read("fractions").boxes_xyxy, fractions(pixels["boxes"]))


def test_broken_images_are_left_out_and_named_and_a_second_run_adds_them_once_repaired(tmp_path: Path) -> None:
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


def test_features_beyond_float16_are_left_out(tmp_path: Path) -> None:
    path = write_npz(tmp_path, {"7": {"features": np.full((1, WIDTH), 1e6, np.float32)}})
    report = convert_features("npz", [path], tmp_path / "store", WIDTH, MAX_REGIONS)
    assert "image 7: features contain NaN or infinity" in report.broken[0]


def test_a_wrong_width_ends_the_conversion_with_one_sentence(tmp_path: Path) -> None:
    path = write_npz(tmp_path, {f"{image}": regions(1) for image in range(30)})
    with pytest.raises(DataError, match=r"the first 20 images cannot be read: .* 16 wide instead of 2048"):
        convert_features("npz", [path], tmp_path / "store", 2048, MAX_REGIONS)


def test_files_without_features_and_stores_of_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="nothing: no features in it"):
        convert_features("npz", [tmp_path / "nothing"], tmp_path / "store", WIDTH, MAX_REGIONS)
    path = write_tsv(tmp_path, images(1))
    convert_features("tsv", [path], tmp_path / "store", WIDTH, MAX_REGIONS)
    with pytest.raises(DataError, match="features of another source"):
        convert_features("tsv", [path], tmp_path / "store", WIDTH, MAX_REGIONS - 1)
