"""Errors of the detectors."""

from smart_caption_ros.errors import ExpectedError


class DetectorError(ExpectedError):
    """A detector's graph or its class names are missing or not supported.

    The message is one sentence: what, where, what to do.
    """
