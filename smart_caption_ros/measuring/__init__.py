"""Measurements on the user's machine: what works, how fast it is, and whether its engines agree."""
