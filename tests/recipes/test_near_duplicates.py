"""Photographs for training that show the same as a measured one are found, and no data set has them."""

from functools import partial

import cv2
import numpy as np
import pytest

from recipes.near_duplicates import (
    measured_photographs,
    perceptual_hash,
    pictures_of_one_series,
    same_pictures,
    training_photographs,
)
from training.data.coco_photographs import CocoPhotographs
from training.data.flickr8k import Flickr8k
from training.data.held_out import excluded_photographs


def textured(seed, side=300):
    """Paint a picture with areas and details."""
    random = np.random.default_rng(seed)
    image = np.zeros((side, side, 3), np.uint8)
    for cells, weight in ((3, 120), (9, 70), (30, 50)):
        values = random.integers(0, weight, (cells, cells, 3)).astype(np.uint8)
        image += cv2.resize(values, (side, side), interpolation=cv2.INTER_CUBIC)
    return image


def encoded(image):
    return cv2.imencode(".jpg", image)[1].tobytes()


def bits_apart(one, other):
    mirrored = perceptual_hash(one) ^ perceptual_hash(other)[0]
    return int(np.bitwise_count(mirrored).sum(axis=1).min())


@pytest.mark.parametrize(
    "change",
    [
        lambda image: cv2.resize(image, (224, 160)),
        lambda image: cv2.imdecode(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 30])[1], cv2.IMREAD_COLOR),
        lambda image: cv2.convertScaleAbs(image, alpha=0.8, beta=20),
        lambda image: image[:, ::-1],
    ],
    ids=["squashed", "compressed", "brightened", "mirrored"],
)
def test_the_hash_of_a_changed_picture_stays_near_and_that_of_another_is_far(change):
    image = textured(1)
    assert bits_apart(image, change(image)) <= 24
    assert bits_apart(image, textured(2)) >= 90


def test_the_same_picture_and_a_picture_of_the_same_series_are_listed():
    scene = textured(3, 340)
    measured = {"a/scene.jpg": partial(encoded, scene[:300, :300])}
    training = {
        "b/same.jpg": partial(encoded, cv2.resize(scene[:300, :300], (200, 200))),
        "b/moved.jpg": partial(encoded, scene[12:312, 14:314]),
        "b/other.jpg": partial(encoded, textured(4)),
    }
    assert [pair[:2] for pair in same_pictures(training, measured)] == [("b/same.jpg", "a/scene.jpg")]
    series = pictures_of_one_series(training, measured)
    assert {pair.photograph for pair in series} == {"b/same.jpg", "b/moved.jpg"}


@pytest.mark.long
def test_no_photograph_for_training_is_the_same_picture_as_a_measured_one(data_dir):
    training = {
        name: read
        for name, read in training_photographs(data_dir).items()
        if name.partition("/")[2] not in excluded_photographs(name.partition("/")[0])
    }
    assert same_pictures(training, measured_photographs(data_dir)) == []


def test_no_data_set_is_trained_on_excluded_photographs(data_dir):
    for dataset, folder in (
        (Flickr8k().open(data_dir), "flickr8k"),
        (CocoPhotographs().open(data_dir), "coco_photographs"),
    ):
        assert excluded_photographs(folder)
        assert not excluded_photographs(folder) & set(dataset.split("train"))
