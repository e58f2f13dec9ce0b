"""Speed and quality, as JSON with versions, hardware and seed."""
