"""The base of the errors that the commands print."""


class ExpectedError(Exception):
    """Something that a user can mend: the message is one sentence that says what is wrong, where, and what to do."""
