"""Builders of household objects: each samples an ``ObjectMesh`` (size, form, colours) from a random generator."""
