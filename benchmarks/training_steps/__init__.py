"""Measurement of the trainer's own steps, of this and of other commits: the modules of ``benchmarks.training``."""
