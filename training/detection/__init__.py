"""The detector beside the captioner's backbone: its weights, labels for it, its loss, and training it."""
