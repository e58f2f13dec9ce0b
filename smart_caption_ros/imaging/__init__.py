"""Images as arrays: files, encoded bytes and sensor_msgs messages <-> uint8 HxWx3 BGR, without ROS.

:func:`read_image` reads every image file, on the robot and in training; :func:`decode_image_bytes` decodes every
encoded image in memory; :func:`check_image` is the one test that an array is such an image.
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
