"""Reading of bottom-up features in each published format, and refusal of malformed files."""

import base64
import json

import numpy as np
import pytest

from tests.training.region_files import SIZE, WIDTH, fractions, regions, write_hdf5, write_npz, write_tsv
from training.data.stored_features import check_images, open_features
from training.errors import DataError

MAX_REGIONS = 50
ONE_BOX, ONE_FEATURE = (base64.b64encode(np.zeros(size, "<f4").tobytes()).decode() for size in (4, WIDTH))
every_format = pytest.mark.parametrize("write", [write_hdf5, write_tsv, write_npz])


def opened(path):
    kind = {".hdf5": "hdf5", ".h5": "hdf5", ".tsv": "tsv"}.get(path.suffix, "npz")
    return open_features(kind, [path], WIDTH, MAX_REGIONS)


@every_format
def test_features_boxes_and_image_sizes_are_read_by_image_id(tmp_path, write):
    images = {"391895": regions(10, seed=1), "7": regions(36, seed=2), "a_boxes": regions(2)}
    store = opened(write(tmp_path, images))
    assert sorted(store.images()) == sorted(images)
    for image, arrays in images.items():
        read = store.read(image)
        np.testing.assert_array_equal(read.features, arrays["features"])
        np.testing.assert_array_equal(read.boxes_xyxy, fractions(arrays["boxes"]))
        assert read.features.dtype == read.boxes_xyxy.dtype == np.float32
        assert read.image_size == SIZE


@pytest.mark.parametrize("write", [write_hdf5, write_npz])
def test_without_the_size_of_the_image_boxes_in_pixels_are_unknown_and_fractions_are_read(tmp_path, write):
    pixels = regions(4)
    as_fractions = {**pixels, "boxes": fractions(pixels["boxes"])}
    store = opened(write(tmp_path, {"pixels": pixels, "fractions": as_fractions}, None))
    assert store.read("pixels").boxes_xyxy is None
    read = store.read("fractions")
    assert read.image_size is None
    np.testing.assert_array_equal(read.boxes_xyxy, as_fractions["boxes"])


@every_format
def test_the_first_50_regions_are_read_in_file_order(tmp_path, write):
    many = regions(100)
    read = opened(write(tmp_path, {"7": many})).read("7")
    np.testing.assert_array_equal(read.features, many["features"][:MAX_REGIONS])
    assert len(read.boxes_xyxy) == MAX_REGIONS


@every_format
def test_an_image_without_features_is_an_error(tmp_path, write):
    path = write(tmp_path, {"7": regions(3)})
    store = opened(path)
    assert "7" in store
    assert "8" not in store
    with pytest.raises(DataError, match=r"features.*image 8: (it has no features|no such file)"):
        store.read("8")
    with pytest.raises(DataError, match=r"features.*2 images, for example image 8"):
        check_images(store, ["7", "8", "9"], str(path))


@every_format
@pytest.mark.parametrize(
    ("kind", "change", "complaint"),
    [
        ("features", lambda v: np.where(np.arange(v.size).reshape(v.shape) == 5, np.nan, v), "features contain NaN"),
        ("boxes", lambda v: v * np.inf, "boxes contain NaN or infinity"),
        ("features", lambda v: v[:, :12], "features are 12 wide instead of 16"),
        ("boxes", lambda v: v[:, :3], r"boxes have the shape \(4, 3\)"),
    ],
)
def test_corrupted_arrays_are_refused_with_file_id_and_reason(tmp_path, write, kind, change, complaint):
    arrays = regions(4)
    arrays[kind] = np.ascontiguousarray(change(arrays[kind])).astype(np.float32)
    store = opened(write(tmp_path, {"7": arrays, "8": regions(2)}))
    with pytest.raises(DataError, match=rf"features.*image 7: {complaint}"):
        store.read("7")
    assert len(store.read("8").features) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("7\ta\n7\tb\n", "line 2: image 7 is in the file twice"),
        (f"7\t640\t480\t{'1' * 5000}\t!!\tAAAA\n", "image 7: num_boxes is '1111"),
        ("7\t640\t480\t1\t!!\tAAAA\n", "image 7: boxes are not base64"),
        (f"7\twide\t480\t1\t{ONE_BOX}\t{ONE_FEATURE}\n", "image 7: the size of the image is 'wide x 480'"),
    ],
)
def test_malformed_tsv_files_are_refused_with_the_place_and_the_reason(tmp_path, text, complaint):
    path = tmp_path / "features.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"features\.tsv.*{complaint}"):
        opened(path).read("7")


def test_files_of_another_kind_are_refused(tmp_path):
    (tmp_path / "features.h5").write_bytes(b"not HDF5")
    (tmp_path / "8.npz").write_bytes(b"not npz")
    np.save(tmp_path / "7.npy", np.ones((3, WIDTH)))
    (tmp_path / "7.npy").replace(tmp_path / "7.npz")
    with pytest.raises(DataError, match="is not an HDF5 file"):
        opened(tmp_path / "features.h5")
    for path in ("nowhere.tsv", "nowhere.h5", "nowhere"):
        with pytest.raises(DataError, match=f"{path}: no such"):
            opened(tmp_path / path)
    with pytest.raises(DataError, match=r"8\.npz, image 8: not an npz file"):
        opened(tmp_path).read("8")
    with pytest.raises(DataError, match=r"7\.npz, image 7: not an npz file"):
        opened(tmp_path).read("7")


@every_format
def test_files_that_are_cut_short_are_refused(tmp_path, write):
    path = write(tmp_path, {"7": regions(20, seed=1)})
    file = path / "7.npz" if path.is_dir() else path
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    with pytest.raises(DataError, match=r"features.*(cut short|not base64)"):
        opened(path).read("7")


@pytest.mark.parametrize("write", [write_hdf5, write_npz])
def test_sizes_of_an_annotation_file_make_fractions_of_boxes_in_pixels(tmp_path, write):
    path = write(tmp_path, {"7": regions(4), "8": regions(4)}, None)
    annotations = tmp_path / "captions_train2014.json"
    annotations.write_text(json.dumps({"images": [{"id": 7, "file_name": "a.jpg", "width": 640, "height": 480}]}))
    kind = "hdf5" if write is write_hdf5 else "npz"
    store = open_features(kind, [path], WIDTH, MAX_REGIONS, [annotations])
    read = store.read("7")
    np.testing.assert_array_equal(read.boxes_xyxy, fractions(regions(4)["boxes"]))
    assert read.image_size == SIZE
    assert store.read("8").boxes_xyxy is None
