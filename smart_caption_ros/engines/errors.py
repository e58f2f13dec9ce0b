"""Errors of the engines. Each message is one sentence: what, where, what to do."""


class EngineError(Exception):
    """An inference engine is not installed, or cannot load or run a graph."""
