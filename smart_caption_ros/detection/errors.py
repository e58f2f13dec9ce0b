"""Errors of the detectors."""


class DetectorError(Exception):
    """A detector's graph or its class names are missing or not supported.

    The message is one sentence: what, where, what to do.
    """
