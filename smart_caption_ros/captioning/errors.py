"""The error of bundles. Each message is one sentence: what is wrong, where, and what to do."""


class BundleError(Exception):
    """A bundle is missing, malformed, truncated, tampered with or newer than this package."""
