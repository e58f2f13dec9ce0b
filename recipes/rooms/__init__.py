"""Captions for real photographs of rooms: ``python -m recipes.rooms``."""
