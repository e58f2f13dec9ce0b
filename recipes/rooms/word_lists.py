"""Long lists of words, written as text."""


def words_in(text: str) -> list[str]:
    """Split a text at white space."""
    return text.split()
