"""The error of bundles. Each message is one sentence: what is wrong, where, and what to do."""

from smart_caption_ros.errors import ExpectedError


class BundleError(ExpectedError):
    """A bundle is missing, malformed, truncated, tampered with or newer than this package."""
