"""Errors of captioning bags."""

from smart_caption_ros.sources import SourceError


class BagError(SourceError):
    """A bag cannot be captioned, or its captions cannot be written. The message is one sentence."""
