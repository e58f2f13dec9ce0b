"""Running captioner graphs in tests."""

import numpy as np
import onnxruntime
import torch

from smart_caption_ros.captioning.guidance import WordBiases
from training.decoding.beam_search import Hypotheses
from training.models.captioner import PADDING_ID, Visual

MAX_WORDS = 12


def session_of(graph):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def random_guides(batch, words, seed):
    """For each image the bias and the group of twelve words by their ids; some biases are negative."""
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


def hypotheses(session, visual, biases=None, *, every_beam=False):
    """What :func:`run` gives as the search in torch gives it."""
    found = run(session, visual, biases, every_beam=every_beam)
    return Hypotheses(*(torch.from_numpy(found[name]) for name in Hypotheses._fields))


def assert_same_beams(found, expected):
    """Compare all beams of two searches."""
    assert torch.equal(found.words, expected.words)
    torch.testing.assert_close(found.log_probabilities, expected.log_probabilities, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(found.scores, expected.scores, atol=1e-4, rtol=1e-5)
    real = expected.words != PADDING_ID
    torch.testing.assert_close(found.attention[real], expected.attention[real], atol=1e-4, rtol=1e-5)


def ragged(batch, seed, length=9):
    """Random tokens, another number of them for each image; the first has all."""
    torch.manual_seed(seed)
    counts = torch.randint(1, length + 1, (batch, 1))
    counts[0] = length
    return Visual(torch.randn(batch, length, 24) * 2, torch.arange(length)[None] < counts)
