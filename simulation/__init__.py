"""Simulated scenes in ACVR's layout."""
