"""Make untrusted text harmless before it is printed, published or logged.

A caption, the name of a topic or an error message can contain escape sequences, which move the cursor, change the title
of the terminal's window or, in some terminals, type commands; and characters that reverse the direction of the text.
"""

import unicodedata

MAX_FOREIGN_TEXT = 200
"""Maximum length of a text from a message, a file or a library."""
MAX_SENTENCE = 1000
"""Maximum length of a sentence in a node's messages and logs, which quotes such texts."""

_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_MAX_COMBINING = 2  # a letter with more combining marks covers the lines above and below


def shortened(text: str, limit: int = MAX_FOREIGN_TEXT) -> str:
    """Return a text of at most ``limit`` characters; an ellipsis replaces the end of a longer one."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def counted(number: int, noun: str) -> str:
    """Return a number with a noun: "1 image", "3 images"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def error_line(error: Exception) -> str:
    """Return the message of an exception on one line, or the name of its type if it has no message."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def reading_problem(error: OSError | ValueError) -> str:
    """Return why a file could not be read as text, as a clause without the name of the file."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def escaped(text: str) -> str:
    """Replace the control, format, private and unassigned characters of a text by escapes: `\\x1b`, `\\u202e`."""
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
    """Return a text on one line, escaped, with single spaces, and at most ``limit`` characters long."""
    # Shortened before it is escaped as well, so that a text of many megabytes takes no time.
    return shortened(escaped(" ".join(text[: 4 * limit].split())), limit)
