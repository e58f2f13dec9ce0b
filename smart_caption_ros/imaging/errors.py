"""Errors of decoding images."""


class ImageError(ValueError):
    """Data that cannot be decoded to an image. The message is one clause for a person, without the file's name."""


class ImageMessageError(ImageError):
    """A sensor_msgs image message that cannot be decoded. The message is one sentence for a person."""
