"""Pictures in files and in memory."""

import cv2
import numpy as np
import pytest

from smart_caption_ros.viewing import encode_picture, write_picture


def test_a_picture_is_written_as_its_name_says_and_no_other_name_is_taken(tmp_path):
    image = np.full((8, 8, 3), 90, np.uint8)
    for name, magic in (("a.png", b"\x89PNG"), ("a.jpg", b"\xff\xd8"), ("A.JPEG", b"\xff\xd8")):
        write_picture(tmp_path / name, image)
        assert (tmp_path / name).read_bytes().startswith(magic)
    with pytest.raises(ValueError, match=r"'\.gif' is not one of \.png, \.jpg, \.jpeg"):
        write_picture(tmp_path / "a.gif", image)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_lower_jpeg_quality_needs_fewer_bytes_and_a_png_keeps_the_pixels():
    image = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    low, high = (encode_picture(image, ".jpg", quality) for quality in (20, 90))
    assert len(low) < len(high)
    png = cv2.imdecode(np.frombuffer(encode_picture(image, ".png"), np.uint8), cv2.IMREAD_COLOR)
    np.testing.assert_array_equal(png, image)
