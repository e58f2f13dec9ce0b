"""Beam search in PyTorch."""
