"""Calibration files of cameras: what drivers write is read, and what is wrong gets one sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from smart_caption_ros.imaging.camera_calibration import RegionOfInterest, read_calibration
from smart_caption_ros.imaging.errors import CalibrationError

# As camera_calibration writes it.
CALIBRATION = """\
image_width: 640
image_height: 480
camera_name: narrow_stereo
camera_matrix:
  rows: 3
  cols: 3
  data: [438.783367, 0.000000, 305.593336, 0.000000, 437.302876, 243.738352, 0.000000, 0.000000, 1.000000]
distortion_model: plumb_bob
distortion_coefficients:
  rows: 1
  cols: 5
  data: [-0.361976, 0.110510, 1.014e-03, 5e-05, 0.000000]
rectification_matrix:
  rows: 3
  cols: 3
  data: [0.999978, 0.002789, -0.006046, -0.002816, 0.999986, -0.004401, 0.006034, 0.004417, 0.999972]
projection_matrix:
  rows: 3
  cols: 4
  data: [393.653800, 0, 322.797939, 0, 0, 393.653800, 241.090902, 0, 0, 0, 1, 0]
"""


def changed(**changes: Any) -> str:
    """The calibration with some entries replaced; `_` parts entries of entries, and None removes one."""
    content = yaml.safe_load(CALIBRATION)
    for path, value in changes.items():
        entries = content
        *outer, last = path.split("__")
        for name in outer:
            entries = entries[name]
        if value is None:
            del entries[last]
        else:
            entries[last] = value
    return yaml.safe_dump(content)


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "camera.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_what_camera_calibration_writes_is_read(tmp_path: Path) -> None:
    calibration = read_calibration(written(tmp_path, CALIBRATION))
    assert read_calibration(written(tmp_path, b"\xef\xbb\xbf" + CALIBRATION.encode())) == calibration
    assert calibration.image_size == (640, 480)
    assert calibration.distortion_model == "plumb_bob"
    assert calibration.d == (-0.361976, 0.11051, 0.001014, 5e-05, 0.0)
    assert (calibration.k[0], calibration.k[2], calibration.k[8]) == (438.783367, 305.593336, 1.0)
    assert calibration.r[1] == 0.002789
    assert calibration.p[6] == 241.090902


def test_other_models_and_parts_of_the_sensor_are_read(tmp_path: Path) -> None:
    eight = {"rows": 1, "cols": 8, "data": [0.1] * 8}
    part = {"x_offset": 8, "y_offset": 4, "height": 240, "width": 320, "do_rectify": 1}
    text = changed(
        distortion_model="rational_polynomial", distortion_coefficients=eight, binning_x=2, binning_y=2, roi=part
    )
    calibration = read_calibration(written(tmp_path, text))
    assert (calibration.distortion_model, len(calibration.d)) == ("rational_polynomial", 8)
    assert calibration.roi == RegionOfInterest(8, 4, 240, 320, do_rectify=True)
    assert (calibration.width, calibration.height) == (640, 480)
    assert calibration.image_size == (160, 120), "of the part, with binning"


def test_without_a_model_it_is_plumb_bob_as_drivers_assume(tmp_path: Path) -> None:
    assert read_calibration(written(tmp_path, changed(distortion_model=None))).distortion_model == "plumb_bob"


BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 8)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it must have the entries image_width"),
        ("[1, 2]", "it must have the entries image_width"),
        ("image_width: [", "it is not YAML"),
        ("%YAML:1.0\n---\nimage_width: 640", "it is not YAML"),
        ("!!python/object/apply:os.system ['true']", "it is not YAML"),
        (b"\xff\xfe", "can't decode"),
        (b"#" * (1 << 20) + b"##", "more than 1 MiB"),
        ("[" * 100_000, "recursion"),
        (changed(image_width=None), "image_width must be a number of pixels, not None"),
        (changed(image_height=-3), "image_height must be a number of pixels, not -3"),
        (changed(image_height="many"), "image_height must be a number of pixels, not 'many'"),
        (changed(camera_matrix=None), "camera_matrix must have the entries rows, cols and data"),
        (changed(camera_matrix__rows=2), "camera_matrix must have 3 rows and 3 columns, not 2 and 3"),
        (changed(camera_matrix__data=[1.0]), "the data of camera_matrix must be a list of 9 numbers"),
        (changed(camera_matrix__data=[0.0] * 9), "the focal lengths in camera_matrix must be positive"),
        (changed(projection_matrix__data=["x"] * 12), "the data of projection_matrix must be finite numbers, not 'x'"),
        (changed(rectification_matrix__data=[float("nan")] * 9), "must be finite numbers, not nan"),
        (changed(distortion_coefficients__cols=10**9), "rows and cols of distortion_coefficients must be numbers up"),
        (changed(distortion_model=7), "distortion_model must be a name"),
        (changed(binning_x=-1), "binning_x must be a whole number from 0, not -1"),
        (changed(roi=3), "roi must have the entries"),
        (BOMB + changed(image_width=None) + "image_width: *i", "image_width must be a number of pixels, not a list"),
    ],
)
def test_a_file_that_is_no_calibration_gets_one_bounded_sentence(
    tmp_path: Path, text: str | bytes, problem: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(CalibrationError, match=re.escape(problem)) as caught:
        read_calibration(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path} is not a camera calibration: ")
    assert "\n" not in sentence
    assert len(sentence) < len(str(path)) + 300


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match=r"cannot read the calibration .*/absent\.yaml: No such file"):
        read_calibration(tmp_path / "absent.yaml")
    with pytest.raises(CalibrationError, match="Is a directory"):
        read_calibration(tmp_path)
