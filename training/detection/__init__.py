"""A detector on the captioner's backbone: labels for it, the head, its loss, and training it alone."""
