"""Generated data: rendered households, captions for photographs, labels by teacher networks, the lexicon."""
