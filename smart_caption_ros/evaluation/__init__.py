"""Pictures whose objects are known, and how much of them captions name: the coverage benchmark."""
