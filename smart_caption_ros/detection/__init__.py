"""Object detectors: their layouts, boxes and class names."""
