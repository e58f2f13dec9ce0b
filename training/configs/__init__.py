"""Experiment files, and the schema that they are checked by."""
