"""Metrics of captions; those of the COCO toolkit are computed by pycocoevalcap."""
