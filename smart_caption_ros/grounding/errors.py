"""Errors of noun coverage."""


class CoverageError(Exception):
    """A pipeline, a file of word vectors or of synonyms cannot be used; the message is one sentence."""
