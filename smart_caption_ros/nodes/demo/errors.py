"""Errors of the demo."""


class DemoError(Exception):
    """The demo cannot run, or did not caption every frame. The message is for a person."""
