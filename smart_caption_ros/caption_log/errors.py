"""The error of the caption log."""

from smart_caption_ros.errors import ExpectedError


class CaptionLogError(ExpectedError):
    """The log cannot be opened, written, searched or read. The message is one sentence for a person."""
