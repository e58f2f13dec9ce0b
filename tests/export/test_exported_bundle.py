"""An exported bundle on the robot side gives the captions of torch."""

import cv2
import numpy as np
import pytest
import torch

from export.storage import round_to_float16
from smart_caption_ros.captioning import Captioner
from tests.frames import blobs
from training.engine.trained_captioner import TrainedCaptioner


@pytest.fixture(scope="module")
def captioner(exported_bundle):
    return Captioner.from_bundle(exported_bundle, engine="onnxruntime-cpu", threads=1)


@pytest.fixture(scope="module")
def trained(tiny_checkpoint):
    trained = TrainedCaptioner.load(tiny_checkpoint)
    round_to_float16(trained.captioner)
    round_to_float16(trained.backbone)
    return trained


@pytest.mark.parametrize("seed", range(6))
def test_words_and_log_probabilities_equal_those_of_torch(captioner, trained, seed):
    image = blobs(seed)
    expected = trained.caption_images(image[None], beam_size=5, max_words=12)
    caption = captioner.caption(image)
    assert [word.text for word in caption.words] == trained.words(expected)[0]
    np.testing.assert_allclose(
        [word.log_probability for word in caption.words],
        expected.log_probabilities[0, 0, : len(caption.words)],
        atol=1e-4,
    )
    assert caption.score == pytest.approx(float(expected.scores[0, 0]), abs=1e-3)


def test_a_larger_frame_is_squashed_as_opencv_does_it(captioner, trained):
    image = blobs(3, 480, 640)
    squashed = cv2.resize(image, (224, 224), interpolation=cv2.INTER_AREA)
    with torch.inference_mode():
        expected = trained.words(trained.caption_images(squashed[None], 5, 12))[0]
    assert [word.text for word in captioner.caption(image).words] == expected
