"""Builders of things: each takes a random generator and returns a ``Shape`` of its own size, form and colour."""
