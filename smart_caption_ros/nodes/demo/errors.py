"""Errors of the demo."""

from smart_caption_ros.errors import ExpectedError


class DemoError(ExpectedError):
    """The demo cannot run, or did not caption every frame. The message is for a person."""
