"""Bottom-up features in each published format, right and wrong."""

import base64
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from training.data.flickr8k import DataError
from training.data.region_features import MAX_REGIONS, RegionFeatures, check_images, open_features

Arrays = dict[str, np.ndarray]
WIDTH = 16


def regions(count: int, width: int = WIDTH, seed: int = 0) -> Arrays:
    random = np.random.default_rng(seed)
    boxes = random.uniform(0, 100, (count, 4)).astype(np.float32)
    return {"features": random.normal(size=(count, width)).astype(np.float32), "boxes": boxes}


def write_hdf5(folder: Path, images: dict[str, Arrays]) -> Path:
    import h5py

    path = folder / "features.hdf5"
    with h5py.File(path, "w") as file:
        for image, arrays in images.items():
            for kind, values in arrays.items():
                file[f"{image}_{kind}"] = values
    return path


def write_tsv(folder: Path, images: dict[str, Arrays]) -> Path:
    path = folder / "features.tsv"
    lines = []
    for image, arrays in images.items():
        encoded = [base64.b64encode(arrays[kind].tobytes()).decode() for kind in ("boxes", "features")]
        lines.append("\t".join([image, "640", "480", str(len(arrays["boxes"])), *encoded]))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_npz(folder: Path, images: dict[str, Arrays]) -> Path:
    path = folder / "features"
    path.mkdir()
    for image, arrays in images.items():
        np.savez(path / f"{image}.npz", **arrays)
    return path


Writer = Callable[[Path, dict[str, Arrays]], Path]
every_format = pytest.mark.parametrize("write", [write_hdf5, write_tsv, write_npz])


def opened(path: Path) -> RegionFeatures:
    return open_features(path, width=WIDTH)


@every_format
def test_features_and_boxes_are_read_by_image_id(tmp_path: Path, write: Writer) -> None:
    images = {"391895": regions(10, seed=1), "7": regions(36, seed=2)}
    store = opened(write(tmp_path, images))
    for image, arrays in images.items():
        read = store.read(image)
        np.testing.assert_array_equal(read.features, arrays["features"])
        assert read.boxes_xyxy is not None
        np.testing.assert_array_equal(read.boxes_xyxy, arrays["boxes"])
        assert read.features.dtype == read.boxes_xyxy.dtype == np.float32


@every_format
def test_the_first_50_regions_are_read_in_file_order(tmp_path: Path, write: Writer) -> None:
    many = regions(100)
    read = opened(write(tmp_path, {"7": many})).read("7")
    np.testing.assert_array_equal(read.features, many["features"][:MAX_REGIONS])
    assert read.boxes_xyxy is not None
    assert len(read.boxes_xyxy) == MAX_REGIONS


@every_format
def test_a_missing_image_is_an_error_and_never_random_numbers(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, {"7": regions(3)})
    store = opened(path)
    assert "7" in store
    assert "8" not in store
    with pytest.raises(DataError, match=r"features.*image 8: (it has no features|no such file)"):
        store.read("8")
    with pytest.raises(DataError, match=r"features.*2 images, for example image 8"):
        check_images(store, ["7", "8", "9"], path)


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
def test_corrupted_arrays_are_refused_with_file_id_and_reason(
    tmp_path: Path, write: Writer, kind: str, change: Callable[[np.ndarray], np.ndarray], complaint: str
) -> None:
    arrays = regions(4)
    arrays[kind] = np.ascontiguousarray(change(arrays[kind])).astype(np.float32)
    store = opened(write(tmp_path, {"7": arrays, "8": regions(2)}))
    with pytest.raises(DataError, match=rf"features.*image 7: {complaint}"):
        store.read("7")
    assert len(store.read("8").features) == 2


@pytest.mark.parametrize("write", [write_hdf5, write_npz])
def test_class_probabilities_are_read_where_there_are_any(tmp_path: Path, write: Writer) -> None:
    with_classes = {**regions(3), "cls_prob": np.full((3, 5), 0.2, np.float32)}
    store = opened(write(tmp_path, {"7": with_classes, "8": {**with_classes, "cls_prob": np.ones((2, 5))}}))
    read = store.read("7")
    assert read.class_probabilities is not None
    assert read.class_probabilities.shape == (3, 5)
    with pytest.raises(DataError, match="image 8: class probabilities"):
        store.read("8")


def test_an_image_without_regions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"image 7: features have the shape \(0, 16\)"):
        opened(write_npz(tmp_path, {"7": regions(0)})).read("7")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("7\t640\t480", "image 7: 3 fields instead of 6"),
        ("7\t640\t480\tmany\tAAAA\tAAAA", "image 7: num_boxes is 'many'"),
        ("7\t640\t480\t1\t!!\tAAAA", "image 7: boxes are not base64"),
    ],
)
def test_malformed_lines_are_refused_with_file_id_and_reason(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "features.tsv"
    path.write_text(f"{line}\n")
    with pytest.raises(DataError, match=rf"features\.tsv, {complaint}"):
        opened(path).read("7")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("", "is empty"), ("no tab\n", "line 1: no tab"), ("7\ta\n7\tb\n", "line 2: image 7 is in the file twice")],
)
def test_malformed_tsv_files_are_refused_when_opened(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "features.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"features\.tsv.*{complaint}"):
        opened(path)


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "features.h5").write_bytes(b"not HDF5")
    (tmp_path / "features.zip").write_bytes(b"")
    (tmp_path / "7.npz").write_bytes(b"not npz")
    with pytest.raises(DataError, match="is not an HDF5 file"):
        opened(tmp_path / "features.h5")
    with pytest.raises(DataError, match="unknown feature format"):
        opened(tmp_path / "features.zip")
    with pytest.raises(DataError, match="no such feature file"):
        opened(tmp_path / "nowhere.tsv")
    with pytest.raises(DataError, match=r"7\.npz, image 7: not an npz file"):
        opened(tmp_path).read("7")
