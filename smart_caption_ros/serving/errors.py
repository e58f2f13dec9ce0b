"""Why the page cannot be served."""


class ServingError(Exception):
    """The page cannot be served. The message is one sentence for a person."""
