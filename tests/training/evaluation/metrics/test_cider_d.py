"""CIDEr-D on ids and on text against pycocoevalcap on text."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.cider.cider_scorer import CiderScorer

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.training.evaluation.metrics.corpora import corpora, split
from training.evaluation.metrics.cider_d import CiderD, TextCiderD

END, PADDING = Vocabulary.end_id, Vocabulary.padding_id


def padded(captions, width):
    """(B, k, width): each caption and its end token, cut to ``width``."""
    rows = [[[*caption, END][:width] for caption in group] for group in captions]
    return np.array([[row + [PADDING] * (width - len(row)) for row in group] for group in rows])


def text(caption, end):
    return " ".join(map(str, [*caption, END] if end else caption))


def toolkit(corpus, images, words, end):
    """(B, k), by the toolkit's public face: one pass over the whole corpus for each beam."""
    references = {image: [text(caption, end) for caption in captions] for image, captions in enumerate(corpus)}
    scores = np.zeros(words.shape[:2])
    for beam in range(words.shape[1]):
        candidates = {image: ["x"] for image in references}
        for row, image in enumerate(images):
            seen = [word for word in words[row, beam].tolist() if word != PADDING and (end or word != END)]
            candidates[image] = [text(seen, end=False)]
        scores[:, beam] = Cider().compute_score(references, candidates)[1][images]
    return scores


id_captions = st.lists(st.integers(4, 9), min_size=1, max_size=8)
id_corpora = st.lists(st.lists(id_captions, min_size=1, max_size=4), min_size=1, max_size=6)


@given(corpus=id_corpora, data=st.data(), end=st.booleans(), width=st.integers(1, 10))
@settings(max_examples=40)
def test_rewards_equal_the_toolkits_cider_with_frequencies_of_the_corpus(corpus, data, end, width):
    images = data.draw(st.permutations(range(len(corpus))))
    tried = st.lists(st.integers(4, 12), max_size=10)  # 10 to 12 are in no reference; a caption may be empty
    words = padded([data.draw(st.lists(tried, min_size=3, max_size=3)) for _ in images], width)
    found = CiderD(corpus, end_token=end).score(np.array(images), words)
    np.testing.assert_allclose(found, toolkit(corpus, images, words, end), atol=1e-9)


def test_words_outside_the_vocabulary_stay_distinct_in_the_references():
    vocabulary = Vocabulary((*SPECIAL, "a", "dog"))
    corpus = [[["a", "zebra"], ["a", "dog"]], [["a", "yak"]], [["dog"]]]
    ids = [[[4, 6], [4, 5]], [[4, 7]], [[5]]]
    words = padded([[[4, 5], [5, 4]]], 4)
    found = CiderD.from_words(corpus, vocabulary, end_token=False).score(np.array([0]), words)
    np.testing.assert_allclose(found, toolkit(ids, [0], words, end=False), atol=1e-9)


class ScorerWithFrequencies(CiderScorer):
    """The toolkit's scorer with the document frequencies of another corpus."""

    def count_documents(self, corpus):
        others = CiderScorer()
        for captions in corpus:
            others.cook_append("", captions)
        others.compute_doc_freq()
        self.document_frequency.update(others.document_frequency)
        self.images = len(corpus)

    @property
    def ref_len(self):
        return float(np.log(self.images)) if hasattr(self, "images") else None

    @ref_len.setter
    def ref_len(self, value):
        """Ignore the number of scored images."""


@given(corpora, corpora)
def test_with_another_corpus_frequencies_it_is_the_toolkits_formula_with_them(corpus, training):
    candidates, references = split(corpus)
    others = [captions for _, captions in training]
    scorer = ScorerWithFrequencies()
    scorer.count_documents(others)
    for image, caption in candidates.items():
        scorer += (caption, references[image])
    found = TextCiderD(references, others).metric(candidates).per_image
    np.testing.assert_allclose(found, scorer.compute_cider(), atol=1e-9)


def test_document_frequencies_may_count_captions():
    corpus = [[[4, 5, 6], [4, 5, 7]], [[4, 8, 9], [5, 8, 9]], [[9, 8, 4], [6, 6, 5]]]
    words = padded([[[4, 5, 7], [4, 8, 9]]] * 3, 6)
    found = CiderD(corpus, end_token=False, captions_are_documents=True).score(np.arange(3), words)
    # With an image for each caption, images and captions are the same; a score is the mean over an image's captions.
    one_by_one = CiderD([[caption] for captions in corpus for caption in captions], end_token=False)
    expected = one_by_one.score(np.arange(6), np.repeat(words, 2, axis=0)).reshape(3, 2, 2).mean(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert not np.allclose(found, CiderD(corpus, end_token=False).score(np.arange(3), words))
