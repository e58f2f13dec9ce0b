"""The base of the errors that the commands print, and the error that the modules of noun coverage share."""


class ExpectedError(Exception):
    """Something that a user can mend: the message is one sentence that says what is wrong, where, and what to do."""


class CoverageError(ExpectedError):
    """A pipeline, a file of word vectors or of synonyms cannot be used."""
