"""Small random corpora for hypothesis."""

from hypothesis import strategies as st

WORDS = ["a", "dog", "cat", "runs", "on", "grass", "the", "red"]
captions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
corpora = st.lists(st.tuples(captions, st.lists(captions, min_size=1, max_size=4)), min_size=2, max_size=6)
"""For each image a caption and its references."""


def split(corpus):
    candidates = {str(image): caption for image, (caption, _) in enumerate(corpus)}
    return candidates, {str(image): references for image, (_, references) in enumerate(corpus)}
