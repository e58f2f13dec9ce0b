"""Checkpoints of the published Object Relation Transformer give its log probabilities."""

import pytest
import torch

from export.import_checkpoint import __main__ as command
from export.import_checkpoint.object_relation import read_object_relation
from export.import_checkpoint.published import ImportChoices, build
from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.training.models.published_object_relation import log_probabilities, random_state
from training.models.captioner import Visual

HEADS, LAYERS = 4, 2
WORDS = [*(f"w{index}" for index in range(1, 20)), "UNK"]


@pytest.fixture
def state():
    torch.manual_seed(0)
    return random_state(LAYERS, 32, 24, 64, HEADS, len(WORDS))


@pytest.mark.parametrize("extra_skip", [False, True])
def test_log_probabilities_are_those_of_the_published_equations(state, extra_skip):
    model = read_object_relation(state, WORDS, ImportChoices(legacy_extra_skip=extra_skip))
    captioner = build(model, state).eval()
    tokens, boxes = torch.randn(6, 24), torch.rand(6, 2, 2).sort(dim=1).values.flatten(1)
    published = torch.tensor([0, 5, 20, 7, 7, 1])
    ours = [model.vocabulary.words.index("<unk>" if word == "UNK" else word) for word in WORDS]
    words = torch.tensor([Vocabulary.begin_id, *(ours[index - 1] for index in published[1:].tolist())])
    with torch.inference_mode():
        encoded = captioner.encode(Visual(tokens[None], None, boxes[None]))
        found = captioner.decode_captions(words[None, None], encoded)[0, 0].log_softmax(dim=-1)
    expected = log_probabilities(state, HEADS, LAYERS, tokens, boxes, published, extra_skip=extra_skip)
    torch.testing.assert_close(found[:, [Vocabulary.end_id, *ours]], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.long
def test_the_command_writes_a_bundle_whose_graph_takes_boxes(state, tmp_path, monkeypatch, capsys):
    torch.save(state, tmp_path / "model.pth")
    (tmp_path / "words.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    arguments = ["object-relation", "model.pth", "--vocabulary", "words.txt", "--legacy-extra-skip", "-o", "bundle"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["import_checkpoint", *arguments])
    assert command.main() == 0
    assert "object_relation" in capsys.readouterr().out
    manifest = (tmp_path / "bundle" / "manifest.json").read_text()
    assert '"token_boxes"' in manifest
    assert '"legacy_extra_skip": true' in manifest
