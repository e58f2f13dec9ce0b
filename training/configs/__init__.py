"""Experiment files and what they may say; ``released/`` has the recipes of the bundles that ship."""
