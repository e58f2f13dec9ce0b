"""Search for the best caption."""
