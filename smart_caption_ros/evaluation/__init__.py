"""The coverage benchmark: how many of the known objects of images captions name."""
