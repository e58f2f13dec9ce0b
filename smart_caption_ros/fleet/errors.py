"""Errors of work on many inputs."""

from smart_caption_ros.sources import SourceError


class FleetError(SourceError):
    """The inputs cannot be found, or the workers cannot be started. The message is one sentence."""
