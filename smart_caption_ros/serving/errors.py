"""Why the page cannot be served."""

from smart_caption_ros.errors import ExpectedError


class ServingError(ExpectedError):
    """The page cannot be served. The message is one sentence for a person."""
