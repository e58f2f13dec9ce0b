"""Types of command line options."""


def positive(text: str) -> int:
    """For argparse: a whole number of at least 1.

    Raises:
        ValueError: it is something else.
    """
    number = int(text)
    if number < 1:
        raise ValueError
    return number
