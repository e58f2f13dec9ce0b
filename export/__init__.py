"""From a trained captioner to a bundle: torch to ONNX, 16-bit storage, checks against torch.

A workstation's tool, run from the checkout: ``python -m export CHECKPOINT BUNDLE``.
"""
