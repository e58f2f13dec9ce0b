"""Captions for photographs that people labelled or described (``python -m training.caption_sets``)."""
