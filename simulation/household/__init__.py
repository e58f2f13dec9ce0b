"""Rendered household scenes with ground truth in ACVR's layout and captions: ``python -m simulation.household``."""
