"""What can be wrong with what noun coverage is given."""


class CoverageError(Exception):
    """A pipeline, a file of word vectors or of synonyms cannot be used; the message is one clear sentence."""
