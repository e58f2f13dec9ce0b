"""The demo: its processes, its listener and its report."""
