"""Captions for photographs that people labelled or described (``python -m recipes.caption_sets``)."""
