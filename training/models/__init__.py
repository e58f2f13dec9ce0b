"""The model families. A new one is one file and one line here."""

from training.models.smart import Smart

FAMILIES = {"smart": Smart}

__all__ = ["FAMILIES"]
