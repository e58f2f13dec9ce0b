"""Errors of noun coverage."""

from smart_caption_ros.errors import ExpectedError


class CoverageError(ExpectedError):
    """A pipeline, a file of word vectors or of synonyms cannot be used."""
