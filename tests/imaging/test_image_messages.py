"""The codec against a decoder that goes through the bytes pixel by pixel, and against malformed messages."""

import array
import contextlib
import re
import struct
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smart_caption_ros.imaging.image_messages import (
    SUPPORTED_ENCODINGS,
    ImageMessageError,
    decode_compressed,
    decode_image,
    encode_image,
)

BYTES_PER_PIXEL = {
    "bgr8": 3, "rgb8": 3, "8UC3": 3, "bgra8": 4, "rgba8": 4, "8UC4": 4, "mono8": 1, "8UC1": 1,
    "mono16": 2, "32FC1": 4, "yuv422": 2, "uyvy": 2, "yuv422_yuy2": 2, "yuyv": 2, "nv12": 1, "nv21": 1,
    "bgr16": 6, "rgb16": 6, "bgra16": 8, "rgba16": 8,
    "bayer_rggb8": 1, "bayer_bggr8": 1, "bayer_gbrg8": 1, "bayer_grbg8": 1,
    "bayer_rggb16": 2, "bayer_bggr16": 2, "bayer_gbrg16": 2, "bayer_grbg16": 2,
}  # fmt: skip
BAYER = [name for name in BYTES_PER_PIXEL if name.startswith("bayer")]
BAYER8 = [name for name in BAYER if name.endswith("8")]
YUV = ["yuv422", "uyvy", "yuv422_yuy2", "yuyv"]
TWO_PLANES = ["nv12", "nv21"]
CONTAINERS = [
    bytes,
    lambda raw: array.array("B", raw),  # rclpy
    lambda raw: np.frombuffer(raw, np.uint8),  # rosbags
]
PLAIN = [name for name in BYTES_PER_PIXEL if name not in BAYER + YUV + TWO_PLANES + ["32FC1"]]


def message(**fields):
    image = {"height": 2, "width": 3, "encoding": "bgr8", "is_bigendian": 0, "step": 9, "data": bytes(18)}
    return SimpleNamespace(**{**image, **fields})


@st.composite
def messages(draw, encodings, minimum=1, even=False):
    """A message with random pixels, padding and byte order, in one of the buffer types of clients."""
    encoding = draw(st.sampled_from(encodings))
    height = draw(st.integers(minimum, 7))
    width = draw(st.integers(minimum, 7)) * (2 if even else 1)
    step = width * BYTES_PER_PIXEL[encoding] + draw(st.integers(0, 5))
    data = draw(st.binary(min_size=step * height, max_size=step * height))
    container = draw(st.sampled_from(CONTAINERS))
    return message(
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=draw(st.sampled_from([0, 1, False, True])),
        step=step,
        data=container(data),
    )


def pixel_bytes(msg, row, column):
    size = BYTES_PER_PIXEL[msg.encoding]
    start = row * msg.step + column * size
    return bytes(msg.data)[start : start + size]


def shift_of(msg):
    """By how many bits 16-bit values are too long, by the brightest of the image."""
    order = ">" if msg.is_bigendian else "<"
    raw = [pixel_bytes(msg, row, column) for row in range(msg.height) for column in range(msg.width)]
    brightest = max(max(struct.unpack(f"{order}{len(pixel) // 2}H", pixel)) for pixel in raw)
    return min(bits for bits in (8, 10, 12, 14, 16) if brightest < 2**bits) - 8


def brute_force(msg):
    """BGR by the definition of each encoding, one pixel at a time."""
    order = ">" if msg.is_bigendian else "<"
    image = np.zeros((msg.height, msg.width, 3), np.uint8)
    shift = shift_of(msg) if msg.encoding.endswith("16") else 0
    for row in range(msg.height):
        for column in range(msg.width):
            raw = pixel_bytes(msg, row, column)
            if msg.encoding in ("bgr8", "8UC3", "bgra8", "8UC4"):
                value = raw[:3]
            elif msg.encoding in ("rgb8", "rgba8"):
                value = bytes([raw[2], raw[1], raw[0]])
            elif msg.encoding in ("mono8", "8UC1"):
                value = raw * 3
            elif msg.encoding.endswith("16"):
                values = [sample >> shift for sample in struct.unpack(f"{order}{len(raw) // 2}H", raw)]
                value = bytes([values[0]] * 3 if len(values) == 1 else values[:3])
                value = value[::-1] if msg.encoding.startswith("rgb") else value
            else:
                value = bytes([round(255 * struct.unpack(order + "f", raw)[0])]) * 3
            image[row, column] = tuple(value)
    return image


@given(messages(PLAIN))
def test_decoding_equals_the_pixel_by_pixel_definition(msg):
    assume(
        (msg.height, msg.width) != (1, 1) or not cv2.__version__.startswith("4.5.")
    )  # which converts no single pixel
    decoded = decode_image(msg)
    np.testing.assert_array_equal(decoded, brute_force(msg))
    assert decoded.dtype == np.uint8
    assert decoded.flags.c_contiguous


@given(
    values=st.lists(st.floats(0, 1, width=32), min_size=6, max_size=6),
    bigendian=st.booleans(),
    padding=st.integers(0, 5),
)
def test_float_grey_levels_are_scaled_in_either_byte_order(values, bigendian, padding):
    order = ">" if bigendian else "<"
    rows = [struct.pack(order + "3f", *values[at : at + 3]) + b"\xff" * padding for at in (0, 3)]
    msg = message(encoding="32FC1", step=12 + padding, is_bigendian=int(bigendian), data=b"".join(rows))
    # The product is rounded in single precision by one and in double by the other.
    np.testing.assert_allclose(decode_image(msg).astype(int), brute_force(msg).astype(int), atol=1)


@given(messages(YUV, even=True))
def test_yuv_equals_the_bt601_formula_within_rounding(msg):
    decoded = decode_image(msg).astype(int)
    for row in range(msg.height):
        for column in range(msg.width):
            pair = pixel_bytes(msg, row, column - column % 2) + pixel_bytes(msg, row, column - column % 2 + 1)
            if msg.encoding in ("yuv422", "uyvy"):
                u, y, v = pair[0], pair[1 + 2 * (column % 2)], pair[2]
            else:
                u, y, v = pair[1], pair[2 * (column % 2)], pair[3]
            luma, blue, red = 1.164 * (max(y, 16) - 16), u - 128, v - 128
            expected = np.clip([luma + 2.018 * blue, luma - 0.391 * blue - 0.813 * red, luma + 1.596 * red], 0, 255)
            np.testing.assert_allclose(decoded[row, column], expected, atol=2)


@given(messages(BAYER8, minimum=3))
def test_bayer_equals_bilinear_interpolation_inside_the_border(msg):
    decoded = decode_image(msg).astype(int)
    pattern = msg.encoding[len("bayer_") :].removesuffix("8")

    def colour(row, column):
        return pattern[2 * (row % 2) + column % 2]

    for row in range(1, msg.height - 1):
        for column in range(1, msg.width - 1):
            for channel, wanted in enumerate("bgr"):
                if colour(row, column) == wanted:
                    expected = pixel_bytes(msg, row, column)[0]
                else:
                    near = [
                        pixel_bytes(msg, row + down, column + right)[0]
                        for down in (-1, 0, 1)
                        for right in (-1, 0, 1)
                        if colour(row + down, column + right) == wanted
                    ]
                    expected = sum(near) / len(near)
                assert abs(decoded[row, column, channel] - expected) <= 0.5


@pytest.mark.parametrize("pattern", ["rggb", "bggr", "gbrg", "grbg"])
@pytest.mark.parametrize("bits", [10, 12, 14, 16])
def test_a_16_bit_mosaic_is_the_8_bit_mosaic_of_the_scaled_values(pattern, bits):
    values = np.random.default_rng(bits).integers(0, 2**bits, (6, 8), dtype=np.uint16)
    values[0, 0] = 2**bits - 1
    size = {"height": 6, "width": 8}
    decoded = decode_image(message(encoding=f"bayer_{pattern}16", **size, step=16, data=values.tobytes()))
    of_8_bits = (values >> (bits - 8)).astype(np.uint8)
    expected = decode_image(message(encoding=f"bayer_{pattern}8", **size, step=8, data=of_8_bits.tobytes()))
    np.testing.assert_array_equal(decoded, expected)


@pytest.mark.parametrize("encoding", ["nv12", "nv21"])
@pytest.mark.parametrize("padding", [0, 6])
def test_two_planes_equal_the_bt601_formula_within_rounding(encoding, padding):
    height, width = 4, 6
    planes = np.random.default_rng(1).integers(0, 256, (height * 3 // 2, width + padding), dtype=np.uint8)
    msg = message(encoding=encoding, height=height, width=width, step=width + padding, data=planes.tobytes())
    decoded = decode_image(msg).astype(int)
    for row in range(height):
        for column in range(width):
            first, second = planes[height + row // 2, 2 * (column // 2) : 2 * (column // 2) + 2].astype(int)
            u, v = (first, second) if encoding == "nv12" else (second, first)
            luma, blue, red = 1.164 * (max(int(planes[row, column]), 16) - 16), u - 128, v - 128
            expected = np.clip([luma + 2.018 * blue, luma - 0.391 * blue - 0.813 * red, luma + 1.596 * red], 0, 255)
            np.testing.assert_allclose(decoded[row, column], expected, atol=2)


@pytest.mark.parametrize("format_", ["16UC1", "16UC1; png compressed", "16UC1; png compressed 16UC1"])
def test_depth_in_millimetres_is_refused_in_a_sentence(format_):
    sentence = r"16UC1 holds depth in millimetres \(REP 118\), not a picture; subscribe to a colour image"
    if format_ == "16UC1":
        with pytest.raises(ImageMessageError, match=sentence):
            decode_image(message(encoding="16UC1", step=6, data=bytes(12)))
    data = cv2.imencode(".png", np.full((2, 3), 1500, np.uint16))[1].tobytes()
    with pytest.raises(ImageMessageError, match=sentence):
        decode_compressed(SimpleNamespace(format=format_, data=data))


@pytest.mark.parametrize(("rows", "bytes_"), [(8, 0), (0, 4096), (1, 5)])
def test_padding_of_a_driver_behind_the_rows_is_left_out(rows, bytes_):
    image_bgr = np.random.default_rng(0).integers(0, 256, (40, 64, 3), dtype=np.uint8)
    fields = encode_image(image_bgr)
    data = bytes(fields["data"]) + b"\xff" * (rows * fields["step"] + bytes_)
    np.testing.assert_array_equal(decode_image(SimpleNamespace(**{**fields, "data": data})), image_bgr)


def test_the_last_row_may_come_without_its_padding():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    padded = np.pad(pixels.reshape(2, 12), ((0, 0), (0, 4)))
    data = padded.tobytes()[:-4]
    np.testing.assert_array_equal(decode_image(message(height=2, width=4, step=16, data=data)), pixels)
    with pytest.raises(ImageMessageError, match="truncated data"):
        decode_image(message(height=2, width=4, step=16, data=data[:-1]))


@pytest.mark.parametrize("spelling", ["RGB8", "Rgb8", " rgb8 "])
def test_the_case_of_an_encoding_does_not_matter(spelling):
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    decoded = decode_image(message(encoding=spelling, data=pixels.tobytes()))
    np.testing.assert_array_equal(decoded, pixels[..., ::-1])


@pytest.mark.parametrize(
    ("format_", "data", "codec"),
    [
        ("h264", b"\0\0\0\1\x67\x42\0\x0a", "H.264"),
        ("H.265; annexb", b"\0\0\1\x40\1", "H.265"),
        ("hevc", b"\0\0\1\x40\1", "H.265"),
        ("", b"\0\0\0\1\x67\x42\0\x0a", "H.264 or H.265"),
        ("av1", b"\x12\0\x0a", "AV1"),
    ],
)
def test_video_in_a_compressed_image_is_refused_by_the_name_of_its_codec(format_, data, codec):
    with pytest.raises(ImageMessageError, match=f"^the message holds {re.escape(codec)} video"):
        decode_compressed(SimpleNamespace(format=format_, data=data))


def test_every_supported_encoding_is_tested_here():
    assert set(SUPPORTED_ENCODINGS) == set(BYTES_PER_PIXEL)


@given(height=st.integers(1, 9), width=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_encoding_and_decoding_give_the_image_back(height, width, seed):
    image_bgr = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    fields = encode_image(image_bgr)
    assert fields["data"].typecode == "B"
    np.testing.assert_array_equal(decode_image(SimpleNamespace(**fields)), image_bgr)


@pytest.mark.parametrize(
    "array_", [np.zeros((2, 3), np.uint8), np.zeros((2, 3, 3), np.float32), np.zeros((0, 3, 3), np.uint8)]
)
def test_encoding_refuses_what_is_not_a_bgr_image(array_):
    with pytest.raises(ValueError, match="a frame must be uint8 HxWx3"):
        encode_image(array_)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"encoding": "h264"}, r"unknown encoding 'h264'; understood are bgr8, rgb8"),
        ({"step": 8}, r"wrong step: a row of 3 bgr8 pixels takes 9 bytes, and step is 8"),
        ({"step": 10}, r"truncated data: 2 rows of 10 bytes are 20 bytes, and there are 18"),
        ({"data": bytes(17)}, r"truncated data"),
        ({"data": bytes(36)}, r"wrong step or height"),
        ({"height": 100, "step": 90, "data": bytes(9000 + 5000)}, r"wrong step or height"),
        ({"data": "text"}, r"the data are not bytes but str"),
        ({"data": None}, r"the data are not bytes but NoneType"),
        ({"width": 0, "step": 0, "data": b""}, r"no pixels \(width 0, height 2\)"),
        ({"encoding": "mono16", "step": 5, "data": bytes(10)}, r"wrong step"),
        ({"encoding": "yuyv", "step": 6, "data": bytes(12)}, r"yuyv needs an even width"),
        ({"encoding": "nv12", "step": 3, "data": bytes(9)}, r"nv12 needs an even width"),
        ({"encoding": "nv12", "width": 4, "height": 3, "step": 4, "data": bytes(24)}, r"nv12 needs an even height"),
        ({"encoding": "nv21", "width": 4, "step": 4, "data": bytes(8)}, r"truncated data: 3 rows of 4 bytes are 12"),
        ({"encoding": "bayer_rggb8", "step": 3, "data": bytes(6)}, r"bayer_rggb8 needs at least 3x3 pixels"),
    ],
)
def test_a_malformed_message_is_refused_with_what_is_wrong(fields, sentence):
    with pytest.raises(ImageMessageError, match=sentence) as caught:
        decode_image(message(**fields))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0.0, 0.5, np.nan, 1.0, 1.0, 1.0], "1 NaN or infinite values"),
        ([np.inf, -np.inf, 0.0, 0.0, 0.0, 0.0], "2 NaN or infinite values"),
        ([0.0, 0.5, 3.25, 1.0, 1.0, 1.0], r"these go from 0 to 3\.25"),
        ([-1.0, 0.5, 0.5, 1.0, 1.0, 1.0], r"these go from -1 to 1"),
    ],
)
def test_distances_in_32fc1_are_not_taken_for_a_picture(values, sentence):
    msg = message(encoding="32FC1", step=12, data=np.array(values, "<f4").tobytes())
    with pytest.raises(ImageMessageError, match=sentence):
        decode_image(msg)


@settings(max_examples=100)
@given(
    height=st.integers(-1, 5),
    width=st.integers(-1, 5),
    encoding=st.sampled_from(SUPPORTED_ENCODINGS),
    step=st.integers(-1, 30),
    data=st.binary(max_size=120),
)
def test_any_combination_of_fields_gives_the_image_or_the_error(height, width, encoding, step, data):
    msg = message(height=height, width=width, encoding=encoding, step=step, data=data)
    with contextlib.suppress(ImageMessageError):
        assert decode_image(msg).shape == (height, width, 3)


def photograph():
    down, right = np.mgrid[0:48, 0:64]
    return np.dstack([4 * right, 5 * down, 255 - 2 * (right + down)]).astype(np.uint8)


@pytest.mark.parametrize(
    ("suffix", "format_", "tolerance"),
    [
        (".png", "bgr8; png compressed bgr8", 0),
        (".jpg", "rgb8; jpeg compressed bgr8", 12),
        (".jpg", "jpeg", 12),
    ],
)
def test_compressed_images_are_decoded_to_bgr(suffix, format_, tolerance):
    image_bgr = photograph()
    data = cv2.imencode(suffix, image_bgr)[1].tobytes()
    decoded = decode_compressed(SimpleNamespace(format=format_, data=array.array("B", data)))
    np.testing.assert_allclose(decoded.astype(int), image_bgr.astype(int), atol=tolerance)


@pytest.mark.parametrize("bits", [12, 16])
def test_a_16_bit_png_of_a_camera_is_scaled_by_its_brightest_pixel(bits):
    pixels = np.linspace(0, 2**bits - 1, 64).astype(np.uint16).reshape(8, 8)
    data = cv2.imencode(".png", np.dstack([pixels] * 3))[1].tobytes()
    decoded = decode_compressed(SimpleNamespace(format="bgr16; png compressed", data=data))
    np.testing.assert_array_equal(decoded[..., 1], pixels >> (bits - 8))


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9])
def test_truncated_compressed_data_are_refused(suffix, kept):
    data = cv2.imencode(suffix, photograph())[1].tobytes()
    with pytest.raises(ImageMessageError, match="cannot decode the image in the format 'jpeg'"):
        decode_compressed(SimpleNamespace(format="jpeg", data=data[: int(kept * len(data))]))


def test_compressed_depth_is_refused_as_such():
    with pytest.raises(ImageMessageError, match="compressedDepth holds distances"):
        decode_compressed(SimpleNamespace(format="16UC1; compressedDepth png", data=b"x"))
