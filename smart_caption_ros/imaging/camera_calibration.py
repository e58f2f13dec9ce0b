"""Read a camera's calibration from the YAML file that ROS camera drivers share, without ROS.

The format is that of `camera_calibration_parsers`; the package `camera_calibration` writes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from smart_caption_ros.imaging.errors import CalibrationError
from smart_caption_ros.text import shortened

PLUMB_BOB = "plumb_bob"

_MAX_FILE_BYTES = 1 << 20
_MAX_SIZE_PX = 1 << 16
_MAX_COEFFICIENTS = 32


@dataclass(frozen=True)
class RegionOfInterest:
    """Part of the sensor that the camera sends, in pixels of the whole sensor; zeros stand for all of it."""

    x_offset: int = 0
    y_offset: int = 0
    height: int = 0
    width: int = 0
    do_rectify: bool = False


@dataclass(frozen=True)
class CameraCalibration:
    """Calibration of a camera, with the fields of sensor_msgs/CameraInfo.

    Attributes:
        width: width of the images that the camera was calibrated with [pixel].
        height: their height [pixel].
        distortion_model: name of the distortion model.
        d: coefficients of the distortion model.
        k: intrinsic matrix of the distorted images, 3 x 3 in row-major order.
        r: rectification matrix, 3 x 3 in row-major order.
        p: projection matrix of the rectified images, 3 x 4 in row-major order.
        binning_x: columns of the sensor that make one column of the image; 0 counts as 1.
        binning_y: rows of the sensor that make one row of the image; 0 counts as 1.
        roi: region of interest.
    """

    width: int
    height: int
    distortion_model: str
    d: tuple[float, ...]
    k: tuple[float, ...]
    r: tuple[float, ...]
    p: tuple[float, ...]
    binning_x: int = 0
    binning_y: int = 0
    roi: RegionOfInterest = RegionOfInterest()

    @property
    def image_size(self) -> tuple[int, int]:
        """Width and height of the images that this calibration is valid for [pixel]."""
        width, height = self.roi.width or self.width, self.roi.height or self.height
        return width // (self.binning_x or 1), height // (self.binning_y or 1)


def read_calibration(path: Path) -> CameraCalibration:
    """Read a calibration file.

    Raises:
        CalibrationError: the file is missing, unreadable or not a calibration; one sentence that names it.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CalibrationError(f"cannot read the calibration {path}: {error.strerror or error}") from error
    try:
        if len(content) > _MAX_FILE_BYTES:
            raise CalibrationError("it has more than 1 MiB")
        return _parsed(yaml.safe_load(content.decode("utf-8-sig")))
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise CalibrationError(f"{path} is not a camera calibration: it is not YAML ({shortened(problem)})") from error
    except (CalibrationError, UnicodeDecodeError, RecursionError) as error:
        raise CalibrationError(f"{path} is not a camera calibration: {shortened(str(error))}") from error


def _parsed(content: object) -> CameraCalibration:
    if not isinstance(content, Mapping):
        raise CalibrationError("it must have the entries image_width, image_height, camera_matrix and so on")
    model = content.get("distortion_model", PLUMB_BOB)  # camera_calibration_parsers takes plumb_bob as well
    if not isinstance(model, str) or not model:
        raise CalibrationError("distortion_model must be a name")
    k = _matrix(content, "camera_matrix", 3, 3)
    if k[0] <= 0 or k[4] <= 0:
        raise CalibrationError("the focal lengths in camera_matrix must be positive")
    return CameraCalibration(
        width=_size(content, "image_width"),
        height=_size(content, "image_height"),
        distortion_model=shortened(model),
        d=_matrix(content, "distortion_coefficients"),
        k=k,
        r=_matrix(content, "rectification_matrix", 3, 3),
        p=_matrix(content, "projection_matrix", 3, 4),
        binning_x=_count(content, "binning_x"),
        binning_y=_count(content, "binning_y"),
        roi=_region(content.get("roi", {})),
    )


def _region(content: object) -> RegionOfInterest:
    if not isinstance(content, Mapping):
        raise CalibrationError("roi must have the entries x_offset, y_offset, height, width and do_rectify")
    do_rectify = content.get("do_rectify", False)
    if do_rectify not in (True, False, 0, 1):
        raise CalibrationError("do_rectify must be true or false")
    sizes = {name: _count(content, name) for name in ("x_offset", "y_offset", "height", "width")}
    return RegionOfInterest(**sizes, do_rectify=bool(do_rectify))


def _matrix(
    content: Mapping[Any, Any], name: str, rows: int | None = None, columns: int | None = None
) -> tuple[float, ...]:
    """Return the numbers of a matrix in row-major order; None accepts any number of them."""
    matrix = content.get(name)
    if not isinstance(matrix, Mapping) or not {"rows", "cols", "data"} <= matrix.keys():
        raise CalibrationError(f"{name} must have the entries rows, cols and data")
    shape, data = (matrix["rows"], matrix["cols"]), matrix["data"]
    if not all(_is_whole(side) and 0 <= side <= _MAX_COEFFICIENTS for side in shape):
        raise CalibrationError(f"rows and cols of {name} must be numbers up to {_MAX_COEFFICIENTS}")
    if rows is not None and shape != (rows, columns):
        raise CalibrationError(f"{name} must have {rows} rows and {columns} columns, not {shape[0]} and {shape[1]}")
    if not isinstance(data, list) or len(data) != shape[0] * shape[1]:
        raise CalibrationError(f"the data of {name} must be a list of {shape[0] * shape[1]} numbers")
    return tuple(_number(value, name) for value in data)


def _number(value: object, name: str) -> float:
    try:
        # YAML 1.1 reads 1e-05, as drivers write it, as a string.
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise CalibrationError(f"the data of {name} must be finite numbers, not {_shown(value)}")
    return number


def _size(content: Mapping[Any, Any], name: str) -> int:
    value: Any = content.get(name)
    if not _is_whole(value) or not 0 < value <= _MAX_SIZE_PX:
        raise CalibrationError(f"{name} must be a number of pixels, not {_shown(value)}")
    return int(value)


def _count(content: Mapping[Any, Any], name: str) -> int:
    value: Any = content.get(name, 0)
    if not _is_whole(value) or not 0 <= value <= _MAX_SIZE_PX:
        raise CalibrationError(f"{name} must be a whole number from 0, not {_shown(value)}")
    return int(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: object) -> str:
    """Return a scalar as Python writes it, and the type of anything else, which may have any size."""
    return (
        shortened(repr(value)) if value is None or isinstance(value, str | int | float) else f"a {type(value).__name__}"
    )
