"""Conversion of image files, encoded bytes and sensor_msgs messages to uint8 HxWx3 BGR, and back, without ROS.

All image files are read by :func:`read_image`, on the robot and in training, all encoded images in memory are decoded
by :func:`decode_image_bytes`, and arrays are checked by :func:`check_image`.
"""

from smart_caption_ros.imaging.encoded_images import ImageError, decode_image_bytes, read_image, read_image_size
from smart_caption_ros.imaging.image_messages import ImageMessageError
from smart_caption_ros.imaging.pixels import check_image, resize_image, shrink_image

__all__ = [
    "ImageError",
    "ImageMessageError",
    "check_image",
    "decode_image_bytes",
    "read_image",
    "read_image_size",
    "resize_image",
    "shrink_image",
]
