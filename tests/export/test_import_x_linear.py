"""Published X-LAN and X-Transformer checkpoints through the command."""

import pytest
import torch

from export.import_checkpoint import __main__ as command
from export.import_checkpoint.__main__ import FORMATS
from export.import_checkpoint.published import ImportChoices, build
from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.training.models.published_x_linear import ParityCase

CASES = {"x-lan": "xlan.npz", "x-transformer": "xtransformer.npz"}


def run(monkeypatch, folder, format_name, *options):
    given = (format_name, folder / "published.pth", "--vocabulary", folder / "words.txt", "-o", folder / "bundle")
    monkeypatch.setattr("sys.argv", ["import_checkpoint", *map(str, (*given, *options))])
    return command.main()


@pytest.mark.needs_data
@pytest.mark.parametrize("format_name", CASES)
def test_the_unknown_word_of_the_published_vocabulary_is_ours(format_name, reference_dir):
    case = ParityCase(reference_dir / "parity" / CASES[format_name])
    words = [*case.words[:-1], "UNK"]
    model = FORMATS[format_name](case.state, words, ImportChoices())
    assert model.vocabulary.words[4:] == tuple(words[:-1])
    embedding = "word_embed.0.weight" if format_name == "x-lan" else "decoder.embed_tokens.weight"
    found = build(model, case.state).state_dict()["word_embedding.weight"]
    assert torch.equal(found[Vocabulary.unknown_id], case.state[embedding][-1])
    assert torch.equal(found[Vocabulary.end_id], case.state[embedding][0])


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("format_name", "name", "value", "message"),
    [
        ("x-lan", "logit.weight", torch.zeros(60, 32), "logit.weight has the shape (60, 32)"),
        ("x-lan", "word_embed.0.weight", torch.zeros(50, 32), "has 50 words, the vocabulary 60"),
        ("x-transformer", "decoder.wbil9.bias", torch.zeros(1), "have decoder.wbil9.bias, which x_transformer"),
        ("x-transformer", "att_embed.0.weight", torch.zeros(30, 24), "att_embed.0.weight has the shape (30, 24)"),
        ("x-lan", "--heads", (8,), "4 heads"),
        ("x-lan", "--attend-padding", (), "is for M2"),
    ],
)
def test_a_state_dict_or_an_option_that_does_not_fit_is_refused(
    format_name, name, value, message, reference_dir, tmp_path, monkeypatch, capsys
):
    case = ParityCase(reference_dir / "parity" / CASES[format_name])
    state, options = ({**case.state, name: value}, ()) if not name.startswith("--") else (case.state, (name, *value))
    # As the released files are saved: with the prefix of DataParallel.
    saved = {f"module.{key}": tensor for key, tensor in state.items() if tensor is not None}
    torch.save(saved, tmp_path / "published.pth")
    (tmp_path / "words.txt").write_text("\n".join(case.words), encoding="utf-8")
    assert run(monkeypatch, tmp_path, format_name, *options) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "bundle").exists()
