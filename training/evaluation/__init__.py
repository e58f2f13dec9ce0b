"""Metrics, and reports that hold models side by side."""
