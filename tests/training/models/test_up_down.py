"""Up-Down against its equations, written out for one caption and one word at a time."""

import torch

from tests.tiny_model import padded_logits
from training.models.captioner import Visual
from training.models.up_down import UpDown, UpDownConfig

SIZES = {"vocabulary_size": 30, "token_width": 12, "lstm_units": 10, "attention_units": 7, "embedding_width": 9}


def lstm(x, hidden, cell, weights, name):
    gates = weights[f"{name}.weight_ih"] @ x + weights[f"{name}.bias_ih"]
    gates = gates + weights[f"{name}.weight_hh"] @ hidden + weights[f"{name}.bias_hh"]
    take, keep, candidate, give = gates.chunk(4)
    cell = keep.sigmoid() * cell + take.sigmoid() * candidate.tanh()
    return give.sigmoid() * cell.tanh(), cell


def log_probabilities(weights, units, regions, words):
    """(T, V) of one caption on the regions (N, D) of one image: Eq. 1 to 7 of the paper."""
    hidden_1 = cell_1 = hidden_2 = cell_2 = torch.zeros(units)
    predicted = []
    for word in words:
        x_1 = torch.cat([hidden_2, regions.mean(dim=0), weights["word_embedding.weight"][word]])
        hidden_1, cell_1 = lstm(x_1, hidden_1, cell_1, weights, "attention_lstm")
        scores = torch.stack(
            [
                weights["attention_score.weight"][0]
                @ torch.tanh(weights["token_projection.weight"] @ v + weights["hidden_projection.weight"] @ hidden_1)
                for v in regions
            ]
        )
        attended = sum(share * v for share, v in zip(scores.softmax(0), regions, strict=True))
        x_2 = torch.cat([attended, hidden_1])
        hidden_2, cell_2 = lstm(x_2, hidden_2, cell_2, weights, "language_lstm")
        logits = weights["word_projection.weight"] @ hidden_2 + weights["word_projection.bias"]
        predicted.append(logits.log_softmax(0))
    return torch.stack(predicted)


def test_log_probabilities_are_those_of_the_published_equations():
    torch.manual_seed(0)
    model = UpDown(UpDownConfig(**SIZES)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 3
    tokens, words = torch.randn(3, 6, 12), torch.randint(1, 30, (3, 2, 5))
    counts = (6, 4, 1)
    mask = torch.arange(6)[None] < torch.tensor(counts)[:, None]
    with torch.inference_mode():
        found = padded_logits(model, Visual(tokens, mask), words).log_softmax(-1)
        for image, count in enumerate(counts):
            for caption in range(2):
                expected = log_probabilities(
                    model.state_dict(), 10, tokens[image, :count], words[image, caption].tolist()
                )
                torch.testing.assert_close(found[image, caption], expected, atol=1e-5, rtol=1e-5)
