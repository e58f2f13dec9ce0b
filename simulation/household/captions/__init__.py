"""Captions of rendered frames, written by a grammar from the ground truth.

A frame's visible objects are grouped by noun and place (two red cups on the table). Sentences are sampled from a few
patterns over the groups and the spatial relations between them, with large and central groups first.
"""
