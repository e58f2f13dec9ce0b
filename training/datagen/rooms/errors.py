"""What can go wrong."""


class RoomsError(Exception):
    """The captions cannot be made; the message says what is wrong, where, and what to do."""
