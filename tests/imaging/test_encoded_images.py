"""Image files: their pixels, and their size from the header."""

import io
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from smart_caption_ros.imaging import ImageError, decode_image_bytes, read_image, read_image_size


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.bmp", "a.tiff", "a.webp"])
def test_the_size_is_that_of_the_decoded_picture(tmp_path: Path, name: str) -> None:
    cv2.imwrite(str(tmp_path / name), np.zeros((3, 5, 3), np.uint8))
    assert read_image_size(tmp_path / name) == (5, 3)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
def test_a_picture_that_a_camera_turned_has_the_size_of_the_turned_one(
    tmp_path: Path, name: str, orientation: int
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", (5, 3)).save(tmp_path / name, exif=exif)
    height, width = read_image(tmp_path / name).shape[:2]
    assert read_image_size(tmp_path / name) == (width, height)


def test_only_the_head_is_read(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (200, 300, 3), np.uint8)
    cv2.imwrite(str(tmp_path / "a.png"), noise)
    whole = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(whole[:100])
    assert read_image_size(tmp_path / "a.png") == (300, 200)


@pytest.mark.parametrize(("content", "reason"), [(b"", "damaged or not an image"), (b"no image", "damaged or not")])
def test_what_is_no_picture_has_no_size(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        read_image_size(tmp_path / "a.png")
    with pytest.raises(ValueError, match="No such file"):
        read_image_size(tmp_path / "nowhere.png")


def test_a_small_file_of_many_pixels_is_refused_by_its_header(tmp_path: Path) -> None:
    rows = [b"\0" + b"\0" * 3750] * 30_000  # one bit a pixel
    header = struct.pack(">IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    (tmp_path / "a.png").write_bytes(png)
    for read in (lambda: decode_image_bytes(png), lambda: read_image(tmp_path / "a.png")):
        with pytest.raises(ImageError, match="more than the limit of 50 megapixels"):
            read()


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".tiff", ".webp", ".jp2", ".ppm", ".ras", ".gif"])
def test_the_limit_holds_for_every_format(suffix: str) -> None:
    if not cv2.haveImageWriter(f"a{suffix}"):
        pytest.skip("this OpenCV does not write it")
    if suffix == ".gif":
        file = io.BytesIO()
        Image.new("RGB", (90, 80)).save(file, "GIF")
        data = np.frombuffer(file.getvalue(), np.uint8)
    else:
        encoded, data = cv2.imencode(suffix, np.zeros((80, 90, 3), np.uint8))
        assert encoded
    if suffix != ".gif" or int(cv2.__version__.split(".")[0]) > 4:  # Ubuntu's OpenCV reads no GIF
        assert decode_image_bytes(data, max_pixels=7200).shape == (80, 90, 3)
    with pytest.raises(ImageError, match=r"^it has 90x80 pixels, more than the limit of 0.007199 megapixels$"):
        decode_image_bytes(data, max_pixels=7199)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        (b"", "it is empty"),
        (b"no image", "damaged or not an image"),
        (b"\xff\xd8\xff", "truncated"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_clause(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(ImageError, match=reason):
        read_image(tmp_path / "a.jpg")
    if content is not None:
        with pytest.raises(ImageError, match=reason):
            decode_image_bytes(content)
