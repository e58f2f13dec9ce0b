"""Base class of the errors that commands print, and the error that the modules of noun coverage share."""


class ExpectedError(Exception):
    """An error that the user can correct; its message says in one sentence what is wrong, where, and what to do."""


class CoverageError(ExpectedError):
    """A pipeline, a file of word vectors or of synonyms cannot be used."""
