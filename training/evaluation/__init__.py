"""Metrics of captions, and reports that compare models."""
