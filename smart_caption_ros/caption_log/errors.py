"""The error of the caption log."""


class CaptionLogError(Exception):
    """The log cannot be opened, written, searched or read. The message is one sentence for a person."""
