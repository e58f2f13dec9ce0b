"""Backbones and detectors, and where their weights are from."""
