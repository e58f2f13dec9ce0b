"""The noun tagger and the table of word vectors."""
