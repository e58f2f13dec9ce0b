"""Running captioner graphs in tests."""

import numpy as np
import onnxruntime
import torch

from smart_caption_ros.captioning.guidance import WordBiases
from tests.plain_beam_search import plain_beam_search
from training.models.captioner import Visual

MAX_WORDS = 12


def session_of(graph):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


Guides = list[dict[int, tuple[float, int]]]
"""Bias and group of words by their ids, for each image."""


def random_guides(batch, words, seed):
    """Biases of twelve words in four groups, for each image; some are negative."""
    random = np.random.default_rng(seed)
    return [
        {
            int(word): (float(random.normal(1, 3)), int(random.integers(1, 5)))
            for word in random.choice(np.arange(4, words), 12, replace=False)
        }
        for _ in range(batch)
    ]


def word_biases(guides, words):
    """Guides as the arrays that a graph takes."""
    biases = WordBiases.none(len(guides), words)
    for image, guide in enumerate(guides):
        for word, (bias, group) in guide.items():
            biases.bias[image, word], biases.groups[image, word] = bias, group
    return biases


def run(session, visual, biases=None, *, every_beam=False):
    """Run a captioner graph on the inputs that it takes."""
    tokens = visual.tokens
    given = {
        "tokens": tokens,
        "token_mask": torch.ones(tokens.shape[:2], dtype=torch.bool) if visual.mask is None else visual.mask,
        "token_boxes": visual.boxes_xyxy,
    }
    inputs = {value.name: given[value.name].numpy() for value in session.get_inputs() if value.name in given}
    if biases is not None:
        guide = {"word_bias": biases.bias, "word_groups": biases.groups, "every_beam": np.full(len(tokens), every_beam)}
        inputs |= {value.name: guide[value.name] for value in session.get_inputs() if value.name in guide}
    return dict(zip((output.name for output in session.get_outputs()), session.run(None, inputs), strict=True))


def ragged(batch, seed, length=9):
    """Random tokens, another number of them for each image; the first has all."""
    torch.manual_seed(seed)
    counts = torch.randint(1, length + 1, (batch, 1))
    counts[0] = length
    return Visual(torch.randn(batch, length, 24) * 2, torch.arange(length)[None] < counts)


def assert_equal_to_plain_search(captioner, found, visual, beams, guides=None):
    """Compare the ``beams`` best of each image with a plain torch beam search; return the lengths of all beams."""
    batch, beam_size, _ = found["words"].shape
    lengths = []
    for image in range(batch):
        one = Visual(*(None if field is None else field[image : image + 1] for field in visual))
        guide = None if guides is None else guides[image]
        expected = plain_beam_search(captioner, one, beam_size, MAX_WORDS, guide=guide)
        for place in range(beams):
            words, log_probabilities = expected[place].words, expected[place].log_probabilities
            assert found["words"][image, place, : len(words)].tolist() == words
            assert not found["words"][image, place, len(words) :].any()
            ours = found["log_probabilities"][image, place]
            np.testing.assert_allclose(ours[: len(words)], log_probabilities, atol=1e-4)
            assert not ours[len(words) :].any()
            assert abs(found["scores"][image, place] - sum(log_probabilities)) < 1e-4
        lengths.append([len(beam.words) for beam in expected])
    return lengths
