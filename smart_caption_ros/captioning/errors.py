"""What can go wrong before a frame is captioned. Each message is one sentence: what, where, what to do."""


class BundleError(Exception):
    """A bundle is missing, malformed, truncated, tampered with or newer than this package."""


class EngineError(Exception):
    """An inference engine is not there, or cannot load or run a graph."""


class DetectorError(Exception):
    """A detector's graph or its list of class names is missing or of no kind that is known here."""
