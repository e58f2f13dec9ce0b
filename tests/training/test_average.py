"""The command that averages runs: the mean of their weights, the data of all, and refusals."""

import sys
from dataclasses import replace

import torch

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import tiny_trained
from training import average
from training.engine.trained_captioner import TrainedCaptioner


def moved(by, **changes):
    """A model whose weights are all higher by so much."""
    trained = tiny_trained()
    with torch.no_grad():
        for module in (trained.captioner, trained.backbone):
            assert module is not None
            for parameter in module.parameters():
                parameter += by
    return replace(trained, **changes)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["average", *map(str, arguments)])
    return average.main()


def test_the_average_has_the_mean_of_the_weights_and_the_data_of_all_runs(tmp_path, monkeypatch, capsys):
    paths = [tmp_path / f"{index}.safetensors" for index in range(3)]
    for index, (path, by) in enumerate(zip(paths, (0.0, 0.3, -0.15), strict=True)):
        trained = moved(by)
        data = {**trained.record["experiment"]["data"], "of_another_day": True}
        experiment = {**trained.record["experiment"], "seed": index, "data": data}
        facts = {"experiment": experiment, "dev": {"cider": 0.1 * index}, "backbone_trained_on": [{"name": str(index)}]}
        trained.record = {**trained.record, **facts}
        trained.save(path)
    assert run(monkeypatch, *paths, "-o", tmp_path / "average.safetensors") == 0
    assert "the average of 3 models" in capsys.readouterr().out
    average_model, expected = TrainedCaptioner.load(tmp_path / "average.safetensors"), moved(0.05)
    for name, tensor in expected.tensors().items():
        torch.testing.assert_close(average_model.tensors()[name], tensor, atol=1e-6, rtol=1e-5)
    assert [entry["seed"] for entry in average_model.record["averaged"]] == [0, 1, 2]
    assert [entry["dev"] for entry in average_model.record["averaged"]] == [
        {"cider": 0.1 * index} for index in range(3)
    ]
    assert "dev" not in average_model.record
    assert {"0", "1", "2"} <= {entry["name"] for entry in average_model.record["backbone_trained_on"]}


def test_models_that_cannot_be_averaged_are_refused_with_the_reason(tmp_path, monkeypatch, capsys):
    first, other, output = (
        tmp_path / "first.safetensors",
        tmp_path / "other.safetensors",
        tmp_path / "average.safetensors",
    )
    trained = tiny_trained()
    trained.save(first)
    words = trained.vocabulary.words
    for changed, reason in (
        (replace(trained, vocabulary=Vocabulary((*words[:-1], "zzz"))), "differ in their vocabulary"),
        (replace(trained, backbone=None), "differ in their backbone"),
    ):
        changed.save(other)
        assert run(monkeypatch, first, other, "-o", output) == 1
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert reason in error
        assert str(other) in error
    assert run(monkeypatch, first, "-o", output) == 1
    assert "two different models" in capsys.readouterr().err
    assert run(monkeypatch, first, tmp_path / "none.safetensors", "-o", output) == 1
    assert "none.safetensors" in capsys.readouterr().err
    assert not output.exists()


def test_a_model_that_is_named_twice_is_refused(tmp_path, monkeypatch, capsys):
    path = tmp_path / "best.safetensors"
    tiny_trained().save(path)
    assert run(monkeypatch, path, path, "-o", tmp_path / "average.safetensors") == 1
    assert f"{path} is named twice" in capsys.readouterr().err
    assert not (tmp_path / "average.safetensors").exists()
