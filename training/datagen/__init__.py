"""Data that is made: rendered households, captions for photographs, boxes by teachers, the lexicon."""
