"""Captions for real photographs of rooms that have few: ``python -m training.rooms``."""
