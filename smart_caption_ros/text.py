"""Text from outside, made harmless before it goes to a terminal, into messages and logs.

A caption, the name of a topic or an error can hold escape sequences, which would move the cursor, change the title of
a terminal's window or, with some terminals, type commands; and marks that reverse the direction of what follows.
"""

import unicodedata

MAX_FOREIGN_TEXT = 200
"""Maximum length of a text that comes from a message, a file's content or a library."""
MAX_SENTENCE = 1000
"""Maximum length of a sentence in a node's messages and logs, which quotes such texts."""

_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_MAX_COMBINING = 2  # more marks on one letter grow over the lines around it


def shortened(text: str, limit: int = MAX_FOREIGN_TEXT) -> str:
    """Return a text of at most ``limit`` characters; an ellipsis replaces the end of a longer one."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def counted(number: int, noun: str) -> str:
    """Return a number with a noun: "1 image", "3 images"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def error_line(error: Exception) -> str:
    """Return the message of an exception on one line; the name of its type where it has none."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def reading_problem(error: OSError | ValueError) -> str:
    """Return why a file could not be read as text, in a clause without the file's name."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def escaped(text: str) -> str:
    """Return a text whose control, format, private and unassigned characters are escapes: `\\x1b`, `\\u202e`."""
    shown = []
    combining = 0
    for character in text:
        combining = combining + 1 if unicodedata.combining(character) else 0
        if unicodedata.category(character) in _INVISIBLE:
            shown.append(character.encode("unicode_escape").decode())
        elif combining <= _MAX_COMBINING:
            shown.append(character)
    return "".join(shown)


def visible(text: str, limit: int = MAX_FOREIGN_TEXT) -> str:
    """Return a text of one line, at most ``limit`` characters long, with single spaces, and escaped."""
    # Cut before the escapes as well, so that a text of many megabytes takes no time.
    return shortened(escaped(" ".join(text[: 4 * limit].split())), limit)
