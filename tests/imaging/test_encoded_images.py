"""Image files: their pixels, and their size from the header."""

import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from PIL import Image, TiffImagePlugin, features

from smart_caption_ros.imaging import ImageError, decode_image_bytes, read_image, read_image_size

RAMP = np.tile(np.arange(256, dtype=np.uint8), (48, 1))
RAMP_BGR = cv2.merge([RAMP, RAMP[:, ::-1], RAMP])
TURNS = {
    1: lambda image: image,
    2: np.fliplr,
    3: lambda image: np.rot90(image, 2),
    4: np.flipud,
    5: lambda image: image.swapaxes(0, 1),
    6: lambda image: np.rot90(image, -1),
    7: lambda image: np.rot90(image, 2).swapaxes(0, 1),
    8: np.rot90,
}
"""How the pixels that are stored become upright, by EXIF orientation."""


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.bmp", "a.webp", "a.tif", "a.avif"])
def test_a_picture_that_a_camera_turned_is_turned_back_and_its_size_too(tmp_path, name):
    if name == "a.avif" and not features.check("avif"):
        pytest.skip("this Pillow reads no AVIF")
    stored = np.zeros((40, 64, 3), np.uint8)
    stored[:20, :32], stored[20:, 32:], stored[:10, 50:] = (255, 0, 0), (0, 255, 0), 255
    for orientation in range(1, 9) if name != "a.bmp" else [1]:
        exif = Image.Exif()
        exif[0x0112] = orientation
        Image.fromarray(stored).save(tmp_path / name, **({} if name == "a.bmp" else {"exif": exif}))
        turned = TURNS[orientation](stored)
        decoded_bgr = read_image(tmp_path / name)
        assert decoded_bgr.shape == turned.shape
        assert np.abs(decoded_bgr[..., ::-1].astype(int) - turned).mean() < 8, orientation
        assert read_image_size(tmp_path / name) == turned.shape[1::-1], orientation


@pytest.mark.parametrize("largest", [1, 15, 100, 254, 255, 1000, 65535])
@pytest.mark.parametrize("kind", ["P2", "P3", "P5", "P6"])
def test_the_largest_value_of_a_netpbm_picture_is_white(kind, largest):
    expected = RAMP_BGR[..., ::-1] if kind in ("P3", "P6") else RAMP
    values = np.rint(expected / 255 * largest).astype(np.uint8 if largest < 256 else ">u2")
    pixels = values.tobytes() if kind in ("P5", "P6") else " ".join(map(str, values.ravel())).encode()
    decoded = decode_image_bytes(f"{kind}\n# a comment\n256 48\n{largest}\n".encode() + pixels)[..., ::-1]
    expected = expected if expected.ndim == 3 else cv2.merge([expected] * 3)
    assert np.abs(decoded - np.rint(np.rint(expected / 255 * largest) * 255 / largest)).max() <= 1


def test_a_small_file_of_many_pixels_is_refused_by_its_header(tmp_path):
    rows = [b"\0" + b"\0" * 1000] * 8_000  # one bit a pixel
    header = struct.pack(">IIBBBBB", 8_000, 8_000, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    (tmp_path / "a.png").write_bytes(png)
    for read in (lambda: decode_image_bytes(png), lambda: read_image(tmp_path / "a.png")):
        with pytest.raises(ImageError, match="more than the limit of 50 megapixels"):
            read()


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".tiff", ".webp", ".jp2", ".ppm", ".ras"])
def test_the_limit_holds_for_every_format(suffix):
    if not cv2.haveImageWriter(f"a{suffix}"):
        pytest.skip("this OpenCV does not write it")
    encoded, data = cv2.imencode(suffix, np.zeros((80, 90, 3), np.uint8))
    assert encoded
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
        *(
            (header % (b"9" * 5000), "damaged or not an image")
            for header in (
                b"P5\n%s 1\n255\n",
                b"PF\n%s 1\n",
                b"#?RADIANCE\n\n\n-Y %s +X 1\n",
            )
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_clause(tmp_path, content, reason):
    if content is not None:
        (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(ImageError, match=reason):
        read_image(tmp_path / "a.jpg")
    with pytest.raises(ImageError, match=reason if content is None else "damaged or not an image"):
        read_image_size(tmp_path / "a.jpg")
    if content is not None:
        with pytest.raises(ImageError, match=reason):
            decode_image_bytes(content)


def tiff_bytes(pixels):
    """Return an uncompressed TIFF file of (H, W) or (H, W, 3) BGR; OpenCV 4.5 and 4.6 write few of these types."""
    rgb = np.ascontiguousarray(pixels[..., ::-1] if pixels.ndim == 3 else pixels).astype(pixels.dtype.newbyteorder("<"))
    height, width, channels = *rgb.shape[:2], rgb.shape[2] if rgb.ndim == 3 else 1
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags.update(
        {
            TiffImagePlugin.IMAGEWIDTH: width,
            TiffImagePlugin.IMAGELENGTH: height,
            TiffImagePlugin.BITSPERSAMPLE: (8 * rgb.itemsize,) * channels,
            TiffImagePlugin.COMPRESSION: 1,
            TiffImagePlugin.PHOTOMETRIC_INTERPRETATION: 1 if channels == 1 else 2,
            TiffImagePlugin.SAMPLESPERPIXEL: channels,
            TiffImagePlugin.ROWSPERSTRIP: height,
            TiffImagePlugin.STRIPBYTECOUNTS: rgb.nbytes,
            TiffImagePlugin.STRIPOFFSETS: 0,  # Pillow adds the length of the header
            TiffImagePlugin.SAMPLEFORMAT: ({"u": 1, "i": 2, "f": 3}[rgb.dtype.kind],) * channels,
        }
    )
    file = io.BytesIO()
    tags.save(file)
    return file.getvalue() + rgb.tobytes()


@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.int32, np.uint32])
@pytest.mark.parametrize("picture", [RAMP, RAMP_BGR], ids=["grey", "colour"])
def test_tiff_files_of_whole_numbers_are_scaled_to_8_bits(dtype, picture):
    expected = picture if picture.ndim == 3 else cv2.merge([picture] * 3)
    for factor in (1, 64 if dtype == np.int16 else 256):
        data = tiff_bytes(picture.astype(dtype) * dtype(factor))
        if picture.ndim == 3 and dtype in (np.int32, np.uint32) and cv2.__version__.startswith("4.6"):
            with pytest.raises(ImageError, match="not an image in a format that OpenCV and Pillow read"):
                decode_image_bytes(data)
            continue
        decoded = decode_image_bytes(data)
        np.testing.assert_allclose(decoded.astype(int), expected.astype(int), atol=1)


@pytest.mark.parametrize("suffix", [".tiff", ".pfm", ".hdr"])
def test_fractions_are_grey_levels_from_0_to_1(suffix):
    fractions = RAMP_BGR.astype(np.float32) / 255
    if suffix == ".tiff":
        data = tiff_bytes(fractions)
    elif not cv2.haveImageWriter(f"a{suffix}"):
        pytest.skip("this OpenCV does not write it")
    else:
        data = cv2.imencode(suffix, fractions)[1]
    decoded = decode_image_bytes(data)
    assert decoded.shape == RAMP_BGR.shape
    if suffix == ".hdr":  # linear light, mapped to grey levels
        assert (decoded[0, 0, 0], decoded[0, -1, 0]) == (0, 255)
        assert (np.diff(decoded[0, :, 0].astype(int)) >= 0).all()
    else:
        np.testing.assert_array_equal(decoded, RAMP_BGR)
    with pytest.raises(ImageError, match="it has 256x48 pixels, more than the limit"):
        decode_image_bytes(data, max_pixels=100)


@pytest.mark.parametrize(
    ("pixels", "sentence"),
    [
        (
            np.full((4, 5), 2000.0, np.float32),
            "its fractions of 32 bits go from 2000 to 2000, and grey levels from 0 to 1",
        ),
        (np.full((4, 5), np.nan, np.float32), "its fractions of 32 bits go from nan to nan"),
        (np.full((4, 5), -7, np.int32), "its whole numbers of 32 bits are below 0: it is no picture"),
    ],
)
def test_measurements_are_not_called_damaged(pixels, sentence):
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "TIFF")
    with pytest.raises(ImageError, match=sentence):
        decode_image_bytes(data.getvalue())


@pytest.mark.parametrize("missing", [1, 2])
def test_a_jpeg_without_its_end_marker_is_decoded_with_a_note(missing, caplog, capfd):
    noise = cv2.GaussianBlur(np.random.default_rng(3).integers(0, 255, (120, 160, 3), np.uint8), (0, 0), 3)
    data = cv2.imencode(".jpg", noise)[1].tobytes()
    np.testing.assert_array_equal(decode_image_bytes(data[:-missing]), decode_image_bytes(data))
    assert len([record for record in caplog.records if "has no end marker" in record.message]) <= 1
    progressive = cv2.imencode(".jpg", noise, [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])[1].tobytes()
    for cut_off in (*(data[:-cut] for cut in (12, 60, len(data) // 3, len(data) - 650)), progressive[:-300]):
        with pytest.raises(ImageError, match="the JPEG data is truncated"):
            decode_image_bytes(cut_off)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kind", ["TGA", "GIF"])
def test_formats_that_opencv_may_not_read_are_read_by_pillow(kind):
    data = io.BytesIO()
    Image.fromarray(RAMP).save(data, kind)
    np.testing.assert_array_equal(decode_image_bytes(data.getvalue()), cv2.merge([RAMP] * 3))
    with pytest.raises(ImageError, match="it has 256x48 pixels, more than the limit"):
        decode_image_bytes(data.getvalue(), max_pixels=100)
