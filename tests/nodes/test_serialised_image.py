"""Images read in place say what rclpy's own messages say."""

import array

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from builtin_interfaces.msg import Time
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from smart_caption_ros.imaging.image_messages import decode_image
from smart_caption_ros.nodes.serialised_image import SerialisedImage, parse_image


def image(frame_id: str = "camera", encoding: str = "bgr8", width: int = 5, height: int = 3) -> Image:
    """Random pixels with padding behind each row."""
    step = 3 * width + 2
    pixels = np.random.default_rng(0).integers(0, 256, step * height, np.uint8)
    return Image(
        header=Header(stamp=Time(sec=12, nanosec=345), frame_id=frame_id), height=height, width=width,
        encoding=encoding, is_bigendian=1, step=step, data=array.array("B", pixels.tobytes()),
    )  # fmt: skip


@pytest.mark.parametrize("frame_id", ["", "a", "ab", "abc", "küche/camera"])  # each ends at another alignment
@pytest.mark.parametrize("encoding", ["bgr8", "mono8", "8UC3", "bayer_rggb8"])
def test_every_field_is_the_messages(frame_id: str, encoding: str) -> None:
    message = image(frame_id, encoding)
    found = parse_image(serialize_message(message))
    assert isinstance(found, SerialisedImage)
    for name in ("header", "height", "width", "encoding", "is_bigendian", "step"):
        assert getattr(found, name) == getattr(message, name), name
    assert found.data.tobytes() == message.data.tobytes()


def test_the_picture_is_the_same_and_pixels_without_padding_are_not_copied() -> None:
    message = image()
    np.testing.assert_array_equal(decode_image(parse_image(serialize_message(message))), decode_image(message))
    message.step, message.data = 15, array.array("B", bytes(range(45)))
    found = parse_image(serialize_message(message))
    picture = decode_image(found)
    assert np.shares_memory(picture, np.asarray(found.data))
    assert not picture.flags.writeable
    assert not np.shares_memory(decode_image(message), np.asarray(message.data))


@pytest.mark.parametrize("length", [4, 11, 20, 40, -1])
def test_a_message_that_ends_early_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="ends before its fields do"):
        parse_image(serialize_message(image())[:length])


def test_another_byte_order_is_read_too() -> None:
    big = bytes.fromhex("0000 0000 0000000c 00000159 00000002 6100 0000 00000001 00000002 00000006")
    big += b"mono8\0" + bytes([0, 0]) + (2).to_bytes(4, "big") + (2).to_bytes(4, "big") + bytes([7, 9])
    found = parse_image(big)
    assert (found.header.stamp.sec, found.header.stamp.nanosec, found.header.frame_id) == (12, 345, "a")
    assert decode_image(found)[0, :, 0].tolist() == [7, 9]
