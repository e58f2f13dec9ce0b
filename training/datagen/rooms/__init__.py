"""Captions for real photographs of rooms: ``python -m training.rooms``."""
