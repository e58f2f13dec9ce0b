"""Running captioner graphs in tests."""

import numpy as np
import onnx
import onnxruntime
import torch

from tests.plain_beam_search import plain_beam_search
from training.models.captioner import Visual
from training.models.smart import Smart

MAX_WORDS = 12


def session_of(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(session: onnxruntime.InferenceSession, tokens: torch.Tensor, mask: torch.Tensor) -> dict[str, np.ndarray]:
    outputs = session.run(None, {"tokens": tokens.numpy(), "token_mask": mask.numpy()})
    return dict(zip((output.name for output in session.get_outputs()), outputs, strict=True))


def ragged(batch: int, seed: int, length: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and a mask with another number of them for each image; the first has all."""
    torch.manual_seed(seed)
    counts = torch.randint(1, length + 1, (batch, 1))
    counts[0] = length
    return torch.randn(batch, length, 24) * 2, torch.arange(length)[None] < counts


def assert_equal_to_plain_search(
    model: Smart, found: dict[str, np.ndarray], tokens: torch.Tensor, mask: torch.Tensor, beams: int
) -> list[list[int]]:
    """Hold the ``beams`` best of each image against a plain torch beam search; returns the lengths of all beams."""
    batch, beam_size, _ = found["words"].shape
    lengths = []
    for image in range(batch):
        expected = plain_beam_search(
            model, Visual(tokens[image : image + 1], mask[image : image + 1]), beam_size, MAX_WORDS
        )
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
