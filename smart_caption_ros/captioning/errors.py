"""Errors of the captioning room. Each message is one sentence: what, where, what to do."""


class BundleError(Exception):
    """A bundle is missing, malformed, truncated, tampered with or newer than this package."""
