"""Text from outside, made harmless for a terminal.

A caption, the name of a topic or an error can hold escape sequences, which would move the cursor, change the title of
the window or, with some terminals, type commands; and marks that reverse the direction of what follows.
"""

from __future__ import annotations

import unicodedata

from smart_caption_ros.text import MAX_FOREIGN_TEXT, shortened

_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_MAX_COMBINING = 2  # more marks on one letter grow over the lines around it


def visible(text: str, limit: int = MAX_FOREIGN_TEXT) -> str:
    """Return a text of one line, at most `limit` characters long, in which control characters are escaped.

    White space becomes single spaces. Control, format, private and unassigned characters become `\\x1b`, `\\u202e`.
    """
    shown = []
    combining = 0
    # Cut before the escapes as well, so that a text of many megabytes takes no time.
    for each in " ".join(text[: 4 * limit].split()):
        combining = combining + 1 if unicodedata.combining(each) else 0
        if unicodedata.category(each) in _INVISIBLE:
            shown.append(each.encode("unicode_escape").decode())
        elif combining <= _MAX_COMBINING:
            shown.append(each)
    return shortened("".join(shown), limit)
