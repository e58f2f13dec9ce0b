"""Bags for tests, written with rosbags."""

from collections.abc import Mapping

import cv2
import numpy as np
from rosbags import rosbag2
from rosbags.typesys import Stores, get_typestore

from tests.frames import blobs

STORE = get_typestore(Stores.ROS2_JAZZY)
START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000
RAW, COMPRESSED, STRING = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage", "std_msgs/msg/String"


def header(number, frame_id="optical"):
    stamp_ns = START_NS + number * PERIOD_NS - 5_000_000  # a little before the recording
    stamp = STORE.types["builtin_interfaces/msg/Time"](sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    return STORE.types["std_msgs/msg/Header"](stamp=stamp, frame_id=frame_id)


def image(number, encoding="bgr8"):
    """A small image whose content depends on its number."""
    pixels = blobs(number, 32, 48)
    if encoding == "16UC1":
        pixels = np.full((32, 48, 2), number, np.uint8)
    return STORE.types[RAW](
        header=header(number),
        height=32,
        width=48,
        encoding=encoding,
        is_bigendian=0,
        step=48 * pixels.shape[2],
        data=pixels.reshape(-1),
    )


def compressed(number):
    data = cv2.imencode(".png", blobs(number, 32, 48))[1].reshape(-1)
    return STORE.types[COMPRESSED](header=header(number), format="png", data=data)


def string(number):
    return STORE.types[STRING](data=str(number))


def write_bag(path, topics, count=4, plugin="MCAP", **compression):
    """Write a bag with ``count`` messages on each topic, one every 0.1 s, topics in turn; returns its folder."""
    writer = rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin[plugin])
    if compression:
        writer.set_compression(**compression)
    with writer:
        pairs = list(topics.items() if isinstance(topics, Mapping) else topics)
        connections = [writer.add_connection(topic, make(0).__msgtype__, typestore=STORE) for topic, make in pairs]
        for number in range(count):
            for place, (_, make) in enumerate(pairs):
                message = make(number)
                raw = STORE.serialize_cdr(message, message.__msgtype__)
                writer.write(connections[place], START_NS + number * PERIOD_NS + place, raw)
    return path


def storage_file(bag):
    (file,) = (path for path in bag.iterdir() if path.suffix in (".mcap", ".db3"))
    return file
