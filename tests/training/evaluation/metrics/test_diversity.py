"""Self-BLEU against the toolkit's BLEU with all other captions as references, and the counts beside it."""

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocoevalcap.bleu.bleu import Bleu

from tests.training.evaluation.metrics.corpora import captions
from training.evaluation.metrics.diversity import Diversity, self_bleu


@given(st.lists(captions, min_size=2, max_size=7))
def test_self_bleu_is_bleu_4_against_all_other_captions(said):
    others = {i: said[:i] + said[i + 1 :] for i in range(len(said))}
    with contextlib.redirect_stdout(io.StringIO()):
        (*_, expected), _ = Bleu(4).compute_score(others, {i: [caption] for i, caption in enumerate(said)})
    assert self_bleu(said) == pytest.approx(expected, rel=1e-9)


def test_captions_words_and_repetitions_are_counted():
    said = ["a dog", "a cat sits", "a dog", "a dog", "", "a cat sits"]
    found = Diversity.of(said)
    assert (found.captions, found.different, found.vocabulary_size) == (6, 3, 4)
    assert (found.commonest, found.commonest_count, found.longest_run) == ("a dog", 3, 2)
    assert found.mean_words == pytest.approx(12 / 6)
    assert found.self_bleu == pytest.approx(self_bleu(said))
