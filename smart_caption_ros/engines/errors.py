"""Errors of the engines."""

from smart_caption_ros.errors import ExpectedError


class EngineError(ExpectedError):
    """An inference engine is not installed, or cannot load or run a graph.

    The message is one sentence: what, where, what to do.
    """


class BuildCancelledError(EngineError):
    """The build of an engine was cancelled."""
