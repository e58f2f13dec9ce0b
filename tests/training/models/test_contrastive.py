"""Contrast with other frames of the same kind of scene: which words it raises and lowers, and in which frames."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import tiny_captioner, tiny_visual
from training.models.captioner import Visual
from training.models.contrastive import LARGEST_DIFFERENCE, Contrastive, ContrastiveConfig, contrasted

BEGUN = torch.tensor([[[Vocabulary.begin_id, 7, 8]]])
"""A caption that has begun."""
LOGITS = arrays(np.float32, 6, elements=st.floats(-8, 8, width=32))


@pytest.fixture
def captioner() -> Contrastive:
    found = tiny_captioner("contrastive")
    assert isinstance(found, Contrastive)
    return found


@given(LOGITS, LOGITS, st.floats(0, 2, width=32))
def test_a_word_gains_its_pointwise_mutual_information_unless_it_is_implausible(
    own: np.ndarray, usual: np.ndarray, strength: float
) -> None:
    p, q = (np.exp(x.astype(np.float64) - np.logaddexp.reduce(x.astype(np.float64))) for x in (own, usual))
    information = np.clip(np.log(p / q), -LARGEST_DIFFERENCE, LARGEST_DIFFERENCE)
    information = np.where(p >= 0.1 * p.max() * (1 - 1e-5), information, np.minimum(information, 0))
    unsure = np.isclose(p, 0.1 * p.max(), rtol=1e-4)  # either side of the bound may be right in float32
    found = contrasted(torch.from_numpy(own), torch.from_numpy(usual), torch.tensor(strength)).numpy()
    np.testing.assert_allclose(found[~unsure], (np.log(p) + strength * information)[~unsure], atol=1e-3)


def test_words_that_the_scene_always_has_lose_to_words_that_only_this_frame_has() -> None:
    own = torch.tensor([0.5, 0.4, 0.1]).log()
    usual = torch.tensor([0.8, 0.1, 0.1]).log()
    assert int(contrasted(own, usual, torch.tensor(0.0)).argmax()) == 0
    assert int(contrasted(own, usual, torch.tensor(0.3)).argmax()) == 1


def test_without_strength_words_have_the_probabilities_of_the_captioner(captioner: Contrastive) -> None:
    captioner.scene_strengths.zero_()
    visual, words = tiny_visual(3, 6, seed=1), BEGUN.expand(3, -1, -1)
    with torch.inference_mode():
        found = captioner.decode_captions(words, captioner.encode(visual))
        expected = captioner.captioner.decode_captions(words, captioner.captioner.encode(visual))
    torch.testing.assert_close(found.softmax(-1), expected.softmax(-1))


def test_an_image_belongs_to_the_scene_with_the_nearest_centre_whatever_its_padding_is(captioner: Contrastive) -> None:
    centres = captioner.scene_centres
    tokens = 3 * centres[[2, 0]][:, None].repeat(1, 5, 1)
    mask = torch.ones(2, 5, dtype=torch.bool)
    assert captioner.scene_of(Visual(tokens, mask)).tolist() == [2, 0]
    mask[:, 3:] = False
    tokens[:, 3:] = 100 * centres[1]
    assert captioner.scene_of(Visual(tokens, mask)).tolist() == [2, 0]


def test_frames_of_scenes_without_strength_are_captioned_as_the_captioner_does(captioner: Contrastive) -> None:
    visual = tiny_visual(8, 6, seed=2)
    scenes = captioner.scene_of(visual)
    captioner.scene_strengths.zero_()
    captioner.scene_strengths[scenes[0]] = 1.0
    words = BEGUN.expand(8, -1, -1)
    with torch.inference_mode():
        found = captioner.decode_captions(words, captioner.encode(visual)).softmax(-1)
        expected = captioner.captioner.decode_captions(words, captioner.captioner.encode(visual)).softmax(-1)
    changed = (found - expected).abs().amax(dim=(1, 2, 3)) > 1e-4
    assert changed.tolist() == (scenes == scenes[0]).tolist()
    assert not changed.all(), "the test needs frames of two scenes"


def test_the_opening_words_are_those_of_the_captioner(captioner: Contrastive) -> None:
    captioner.scene_strengths.fill_(1.0)
    visual, words = tiny_visual(2, 6, seed=3), BEGUN.expand(2, -1, -1)
    with torch.inference_mode():
        found = captioner.decode_captions(words, captioner.encode(visual)).softmax(-1)
        expected = captioner.captioner.decode_captions(words, captioner.captioner.encode(visual)).softmax(-1)
    changed = (found - expected).abs().amax(dim=(0, 1, 3)) > 1e-4
    assert captioner.config.opening_words == 1
    assert changed.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scenes": 0}, "scenes must be at least 1"),
        ({"opening_words": -1}, "opening_words must be 0 or more, not -1"),
        ({"context_words": 0}, "context_words must be at least 1"),
        ({"member": {"family": "ensemble", "model": {}}}, "family must be one of smart, .* not 'ensemble'"),
    ],
)
def test_wrong_options_are_refused_with_their_names(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ContrastiveConfig(30, 24, **change)  # type: ignore[arg-type]
