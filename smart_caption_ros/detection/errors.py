"""Errors of the detectors. Each message is one sentence: what, where, what to do."""


class DetectorError(Exception):
    """A detector's graph or its list of class names is missing, or of a kind that is not supported."""
