"""Experiment files, one an experiment, and their schema."""
