"""Captions, images and features for training and evaluation."""
