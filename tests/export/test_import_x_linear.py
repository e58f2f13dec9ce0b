"""Published X-LAN and X-Transformer checkpoints through the command."""

import numpy as np
import onnxruntime
import pytest
import torch

from export.import_checkpoint import __main__ as command
from export.import_checkpoint.__main__ import FORMATS
from export.import_checkpoint.published import ImportChoices, build
from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.training.models.published_x_linear import ParityCase
from training.engine.trained_captioner import TrainedCaptioner

CASES = {"x-lan": "xlan.npz", "x-transformer": "xtransformer.npz"}


@pytest.fixture(params=CASES)
def published(request, reference_dir, tmp_path):
    """A format and its case, saved as the released files are: with the prefix of DataParallel, words from id 1."""
    case = ParityCase(reference_dir / "parity" / CASES[request.param])
    torch.save({f"module.{name}": value for name, value in case.state.items()}, tmp_path / "published.pth")
    (tmp_path / "words.txt").write_text("".join(f"{word}\n" for word in case.words), encoding="utf-8")
    return request.param, case


def run(monkeypatch, folder, format_name, *options):
    given = (format_name, folder / "published.pth", "--vocabulary", folder / "words.txt", "-o", folder / "bundle")
    monkeypatch.setattr("sys.argv", ["import_checkpoint", *map(str, (*given, *options))])
    return command.main()


@pytest.mark.long
@pytest.mark.needs_data
def test_the_bundle_has_the_best_beam_of_the_published_code(published, tmp_path, monkeypatch):
    format_name, case = published
    expected = case.beams("beam3_tokens")
    assert run(monkeypatch, tmp_path, format_name, "--beam-size", 3, "--max-words", expected.shape[1]) == 0
    trained = TrainedCaptioner.load(tmp_path / "bundle" / "captioner.safetensors")
    assert trained.vocabulary.words[4:] == tuple(case.words)
    found, chosen = onnxruntime.InferenceSession(tmp_path / "bundle" / "captioner.onnx").run(
        ["words", "log_probabilities"], {"tokens": case["features"], "token_mask": case["mask"] > 0}
    )
    np.testing.assert_array_equal(found[:, 0], expected)
    np.testing.assert_allclose(chosen[:, 0], case["beam3_logprobs"], atol=1e-4)


@pytest.mark.needs_data
def test_the_unknown_word_of_the_published_vocabulary_is_ours(published):
    format_name, case = published
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
        ("x-lan", "att2ctx.0.bias", None, "lack att2ctx.0.bias, which x_lan of this size has"),
        ("x-lan", "attention.proj.weight", torch.zeros(32, 32), "attention.proj.weight has the shape (32, 32)"),
        ("x-lan", "logit.weight", torch.zeros(60, 32), "logit.weight has the shape (60, 32)"),
        ("x-lan", "word_embed.0.weight", torch.zeros(50, 32), "has 50 words, the vocabulary 60"),
        ("x-transformer", "decoder.wbil9.bias", torch.zeros(1), "have decoder.wbil9.bias, which x_transformer"),
        ("x-transformer", "decoder.embed_positions.pe", torch.zeros(1, 5000, 30), "decoder.embed_positions.pe has"),
        ("x-transformer", "att_embed.0.weight", torch.zeros(30, 24), "att_embed.0.weight has the shape (30, 24)"),
    ],
)
def test_a_state_dict_that_does_not_fit_is_refused_with_its_first_differing_parameter(
    format_name, name, value, message, reference_dir, tmp_path, monkeypatch, capsys
):
    case = ParityCase(reference_dir / "parity" / CASES[format_name])
    state = {**case.state, name: value}
    torch.save({key: tensor for key, tensor in state.items() if tensor is not None}, tmp_path / "published.pth")
    (tmp_path / "words.txt").write_text("\n".join(case.words), encoding="utf-8")
    assert run(monkeypatch, tmp_path, format_name) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "bundle").exists()


@pytest.mark.needs_data
@pytest.mark.parametrize(("option", "message"), [(("--heads", 8), "4 heads"), (("--attend-padding",), "is for M2")])
def test_an_option_that_does_not_fit_is_refused(option, message, reference_dir, tmp_path, monkeypatch, capsys):
    case = ParityCase(reference_dir / "parity" / CASES["x-lan"])
    torch.save(case.state, tmp_path / "published.pth")
    (tmp_path / "words.txt").write_text("\n".join(case.words), encoding="utf-8")
    assert run(monkeypatch, tmp_path, "x-lan", *option) == 1
    assert message in capsys.readouterr().err
