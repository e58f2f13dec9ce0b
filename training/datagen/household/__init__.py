"""Rendered household scenes in ACVR's layout, with captions: ``python -m training.household``."""
