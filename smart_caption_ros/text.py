"""Text from outside, bounded before it goes into messages and logs."""

MAX_FOREIGN_TEXT = 200
"""Maximum length of a text that comes from a message, a file's content or a library."""


def shortened(text: str, limit: int = MAX_FOREIGN_TEXT) -> str:
    """Return a text of at most ``limit`` characters; an ellipsis replaces the end of a longer one."""
    return text if len(text) <= limit else text[: limit - 3] + "..."
