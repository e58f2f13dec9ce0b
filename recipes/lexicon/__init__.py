"""Training of the noun tagger, and the table of word vectors, that ship with the package."""
