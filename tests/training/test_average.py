"""The command that averages runs: the mean of their weights, the data of all, and refusals."""

from dataclasses import replace

import torch

from smart_caption_ros.captioning.vocabulary import Vocabulary
from tests.tiny_model import tiny_trained
from tests.training.commands import run_here
from training.average import main
from training.data.datasets import TRAINED_ON
from training.engine.trained_captioner import TrainedCaptioner


def moved(by, **changes):
    """A model whose weights are all higher by so much."""
    trained = tiny_trained()
    with torch.no_grad():
        for module in (trained.captioner, trained.backbone):
            for parameter in module.parameters():
                parameter += by
    return replace(trained, **changes)


def test_the_average_has_the_mean_of_the_weights_and_the_data_of_all_runs(tmp_path):
    paths = [tmp_path / f"{index}.safetensors" for index in range(3)]
    for index, (path, by) in enumerate(zip(paths, (0.0, 0.3, -0.15), strict=True)):
        trained = moved(by)
        data = {**trained.record["experiment"]["data"], "of_another_day": True}
        experiment = {**trained.record["experiment"], "seed": index, "data": data}
        facts = {"experiment": experiment, "dev": {"cider": 0.1 * index}, "backbone_trained_on": [{"name": str(index)}]}
        trained.record = {**trained.record, **facts}
        trained.save(path)
    done = run_here(main, *paths, "-o", tmp_path / "average.safetensors")
    assert done.returncode == 0, done.stderr
    assert "the average of 3 models" in done.stdout
    average_model, expected = TrainedCaptioner.load(tmp_path / "average.safetensors"), moved(0.05)
    for name, tensor in expected.tensors().items():
        torch.testing.assert_close(average_model.tensors()[name], tensor, atol=1e-6, rtol=1e-5)
    assert [entry["seed"] for entry in average_model.record["averaged"]] == [0, 1, 2]
    assert [entry["dev"] for entry in average_model.record["averaged"]] == [
        {"cider": 0.1 * index} for index in range(3)
    ]
    assert "dev" not in average_model.record
    assert {"0", "1", "2"} <= {entry["name"] for entry in average_model.record["backbone_trained_on"]}


def test_the_average_of_captioners_of_stored_features_names_the_captions_of_all_runs(tmp_path):
    for name in ("a", "b"):
        trained = replace(tiny_trained(), backbone=None)
        trained.record = {"name": name, "experiment": {}, TRAINED_ON: [{"name": name, "terms": "ours"}]}
        trained.save(tmp_path / name)
    done = run_here(main, tmp_path / "a", tmp_path / "b", "-o", tmp_path / "average.safetensors")
    assert done.returncode == 0, done.stderr
    average = TrainedCaptioner.load(tmp_path / "average.safetensors")
    assert [entry["name"] for entry in average.caption_provenance] == ["a", "b"]


def test_models_that_cannot_be_averaged_are_refused_with_the_reason(tmp_path):
    first, other, output = (tmp_path / f"{name}.safetensors" for name in ("first", "other", "average"))
    trained = tiny_trained()
    trained.save(first)
    words = trained.vocabulary.words
    for changed, paths, reason in (
        (replace(trained, vocabulary=Vocabulary((*words[:-1], "zzz"))), [first, other], "differ in their vocabulary"),
        (replace(trained, backbone=None), [first, other], "differ in their backbone"),
        (trained, [first], "two different models"),
        (trained, [first, first], "is named twice"),
        (trained, [first, tmp_path / "none.safetensors"], "is not a readable checkpoint"),
    ):
        changed.save(other)
        done = run_here(main, *paths, "-o", output)
        assert done.returncode == 1
        assert done.stderr.startswith("error: ")
        assert reason in done.stderr
        assert len(paths) == 1 or str(paths[1]) in done.stderr
    assert not output.exists()
