"""The command that adjusts the logits of a run by the words of its training captions."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import tiny_trained
from tests.training.small_flickr8k import make_data
from training import logit_adjustment
from training.engine.trained_captioner import TrainedCaptioner

COLOURS = ("red", "green", "blue")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    trained = tiny_trained()
    words = (*SPECIAL, "a", *COLOURS, *trained.vocabulary.words[len(SPECIAL) + 4 :])
    phase = {"name": "frozen", "epochs": 1, "learning_rate": 1e-3}
    experiment = {**trained.record["experiment"], "name": "tiny", "phases": [phase]}
    record = {**trained.record, "experiment": experiment}
    replace(trained, vocabulary=Vocabulary(words), record=record).save(tmp_path / "best.safetensors")
    return tmp_path / "best.safetensors"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: Path | str) -> int:
    monkeypatch.setattr(sys, "argv", ["logit_adjustment", *map(str, arguments)])
    return logit_adjustment.main()


def test_rarer_words_of_the_training_captions_have_higher_biases(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output, data = tmp_path / "adjusted.safetensors", make_data(tmp_path / "data")
    assert run(monkeypatch, model, "-o", output, "--data", data, "--strength", "0.3", "--end-penalty", "1") == 0
    assert "strength 0.3, end penalty 1" in capsys.readouterr().out
    before, after = TrainedCaptioner.load(model), TrainedCaptioner.load(output)
    biases = after.captioner.get_submodule("word_projection").get_parameter("bias")
    place = {word: index for index, word in enumerate(after.vocabulary.words)}
    assert all(biases[place[colour]] > biases[place["a"]] > 0 for colour in COLOURS)
    assert not biases[len(SPECIAL) + 4 :].any(), "no caption has these words"
    weights = before.captioner.get_submodule("word_projection").get_parameter("weight")
    assert torch.equal(after.captioner.get_submodule("word_projection").get_parameter("weight"), weights)


def test_an_adjusted_model_and_missing_data_are_refused_with_the_file(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output, data = tmp_path / "adjusted.safetensors", make_data(tmp_path / "data")
    assert run(monkeypatch, model, "-o", output, "--data", data) == 0
    assert run(monkeypatch, output, "-o", tmp_path / "again.safetensors", "--data", data) == 1
    assert f"error: {output}: its logits are adjusted already" in capsys.readouterr().err
    assert run(monkeypatch, model, "-o", tmp_path / "again.safetensors", "--data", tmp_path / "none") == 1
    assert "none" in capsys.readouterr().err
    assert not (tmp_path / "again.safetensors").exists()
