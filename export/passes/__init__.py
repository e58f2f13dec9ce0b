"""Passes over ONNX graphs; each is an optional optimisation."""
