"""Constrained beam search against all captions of a tiny vocabulary."""

import itertools

import pytest
import torch

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import padded_logits, tiny_captioner, tiny_smart, tiny_visual
from training.decoding.beam_search import SearchSettings, beam_search
from training.decoding.constrained_search import constrained_beam_search
from training.decoding.constraints import word_ids

FORBIDDEN = SearchSettings().forbidden
MAX_WORDS = 4
WORDS = (4, 5, 6, 7)


def scores_of(captioner, visual, captions):
    """Sums of the log probabilities (B, n) of captions, among the words that may be chosen."""
    longest = torch.zeros(len(captions), MAX_WORDS, dtype=torch.int64)
    for row, caption in enumerate(captions):
        longest[row, : len(caption)] = torch.tensor(caption)
    size = visual.tokens.shape[0]
    begin = torch.full((size, len(captions), 1), Vocabulary.begin_id)
    words = longest.expand(size, -1, -1)
    with torch.no_grad():
        logits = padded_logits(captioner, visual, torch.cat([begin, words[..., :-1]], dim=2)).clone()
    logits[..., list(FORBIDDEN)] = -torch.inf
    chosen = logits.log_softmax(-1).gather(-1, words[..., None])[..., 0]
    return chosen.masked_fill(words == 0, 0.0).sum(-1)


def all_captions():
    """Every caption of up to four words, ended or cut at the longest length."""
    found = [(*words, Vocabulary.end_id) for n in range(MAX_WORDS) for words in itertools.product(WORDS, repeat=n)]
    return found + list(itertools.product(WORDS, repeat=MAX_WORDS))


CONSTRAINTS = [
    [[{4}, {5, 6}], [{7}]],
    [[], [{4}, {5}]],
    [[{4}, {4}], [{5}, {6}]],
]


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("minimum", [1, 2])
def test_wide_beams_find_the_best_of_all_captions_that_satisfy_the_constraints(constraints, minimum):
    captioner, visual = tiny_smart(24, 8, encoder_layers=1, decoder_layers=1), tiny_visual(2, 5, seed=1)
    captions = all_captions()
    scores = scores_of(captioner, visual, captions)
    found = constrained_beam_search(captioner, visual, constraints, SearchSettings(150, MAX_WORDS), minimum)
    for image, sets in enumerate(constraints):
        accepted = [
            row
            for row, caption in enumerate(captions)
            if sum(bool(ids & set(caption)) for ids in sets) >= min(minimum, len(sets))
        ]
        order = sorted(accepted, key=lambda row: -scores[image, row].item())[:3]
        for place, row in enumerate(order):
            words = [word for word in found.words[image, place].tolist() if word]
            assert tuple(words) == captions[row]
            assert found.scores[image, place].item() == pytest.approx(scores[image, row].item(), abs=1e-4)
        best = found.words[image, 0].tolist()
        flags = found.satisfied[image, 0, : len(sets)].tolist()
        assert flags == [bool(ids & set(best)) for ids in sets]


def test_narrow_beams_satisfy_every_constraint():
    captioner, visual = tiny_captioner("up_down"), tiny_visual(4, 7, seed=2, ragged=True)
    constraints = [[{5, 6}, {9}, {20}], [{7}], [], [{29}, {4, 8}]]
    found = constrained_beam_search(captioner, visual, constraints, SearchSettings(3, 10), minimum=3)
    for image, sets in enumerate(constraints):
        for beam in range(3):
            words = set(found.words[image, beam].tolist())
            assert all(ids & words for ids in sets), (image, beam)
            assert found.satisfied[image, beam].sum() == len(sets)
    torch.testing.assert_close(found.log_probabilities.sum(-1), found.scores, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("end_penalty", [0.0, 3.0])
def test_without_constraints_it_is_beam_search(end_penalty):
    captioner, visual = tiny_captioner("smart"), tiny_visual(3, 6, seed=3)
    found = constrained_beam_search(captioner, visual, [[]] * 3, SearchSettings(4, 8, end_penalty=end_penalty))
    with torch.inference_mode():
        expected = beam_search(captioner, visual, SearchSettings(4, 8, stop="all", end_penalty=end_penalty))
    length = found.words.shape[2]
    assert torch.equal(found.words, expected.words[..., :length])
    torch.testing.assert_close(found.scores, expected.scores, atol=1e-4, rtol=1e-5)


def test_a_constraint_has_the_words_and_their_plurals():
    vocabulary = Vocabulary((*SPECIAL, "dog", "dogs", "puppy", "puppies", "cat"))
    assert word_ids(vocabulary, ["Dog", "puppy", "hot dog"]) == {4, 5, 6, 7}
    assert word_ids(vocabulary, ["zebra"]) == set()


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([[{4}] * 4], "4 constraints; 3 are the most"),
        ([[{2}]], "the id 2, which is no word"),
        ([[{99}]], "the id 99"),
        ([[], []], "for 2 images"),
    ],
)
def test_constraints_that_cannot_be_are_refused(constraints, message):
    with pytest.raises(ValueError, match=message):
        constrained_beam_search(tiny_captioner("smart"), tiny_visual(1, 3, seed=5), constraints, SearchSettings(2, 5))
