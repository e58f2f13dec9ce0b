"""Caption metrics through the COCO toolkit."""
