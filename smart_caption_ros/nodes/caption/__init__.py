"""The caption node: captions of the newest images of one or several cameras."""
