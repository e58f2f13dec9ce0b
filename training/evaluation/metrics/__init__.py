"""Metrics of captions; those of the COCO toolkit are by pycocoevalcap."""
