"""The Flickr8k reader, and what it refuses."""

import io
import shutil
import zipfile
from pathlib import Path

import pytest

from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.data.flickr8k import Flickr8k
from training.errors import DataError


@pytest.fixture
def copy(data, tmp_path):
    return Path(shutil.copytree(data / "flickr8k", tmp_path / "flickr8k"))


def test_splits_captions_and_images_are_read(data):
    dataset = Flickr8k().open(data)
    names = dataset.split("dev")
    assert names == [f"dev_{index}.jpg" for index in range(4)]
    assert all(len(dataset.captions[name]) == 3 for name in names)
    assert dataset.read_images(names).shape == (4, 224, 224, 3)
    assert dataset.read_images(names, Preprocessing(288, 288)).shape == (4, 288, 288, 3)


def test_captions_may_hold_commas_with_and_without_quotes(copy):
    with (copy / "captions.csv").open("a") as stream:
        stream.write('dev_0.jpg,one, two and three\ndev_0.jpg,"four, five"\n')
    assert Flickr8k().open(copy.parent).captions["dev_0.jpg"][-2:] == ["one, two and three", "four, five"]


def damaged_archive():
    with zipfile.ZipFile(content := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("dev_0.jpg", bytes(99))
    start = 30 + len("dev_0.jpg")
    return (content.getvalue()[:start] + b"\xff\xff" + content.getvalue()[start + 2 :]).decode("latin-1")


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("images_224.zip", None, "images_224.zip"),
        ("captions.csv", None, "captions.csv"),
        ("dev.txt", None, "dev.txt"),
        ("dev.txt", "caf\xe9.jpg\n", r"dev\.txt is not UTF-8 text"),
        ("images_224.zip", damaged_archive(), r"dev_0\.jpg cannot be read"),
        ("captions.csv", "image,caption\ndev_0.jpg, \n", r"captions\.csv, line 2"),
        ("captions.csv", "dev_0.jpg,a ball\n", "header"),
        ("dev.txt", "dev_0.jpg\nnobody.jpg\n", r"dev\.txt, line 2: nobody\.jpg"),
    ],
)
def test_missing_and_malformed_files_are_refused_with_the_place(copy, name, text, complaint):
    (copy / name).unlink() if text is None else (copy / name).write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=complaint):
        Flickr8k().open(copy.parent).read_image("dev_0.jpg")
