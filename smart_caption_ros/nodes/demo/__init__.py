"""The demo: a camera node and a caption node as processes, a listener, and a report."""
