"""Recipes: several runs, references between them, the average, and resuming."""

import pytest
import torch
import yaml

from tests.training.commands import run_here
from training.engine.experiment import load_experiment
from training.engine.recipe import Recipe
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import ConfigError
from training.train import main

MODEL = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.0}
PHASE = {"name": "only", "epochs": 2, "learning_rate": 1e-3, "images_per_batch": 6}
COMMON = {
    "backbone": "mobilenetv2_float32.onnx", "precision": "fp32", "model": MODEL, "evaluation": {"beam_size": 2},
    "data": {"minimum_count": 1, "max_words": 12}, "phases": [PHASE],
}  # fmt: skip
AVERAGE = [{"run": "second", "phase": "only", "epoch": 1}, {"run": "second", "phase": "only", "epoch": 2}]


def recipe(**changes):
    first = {**COMMON, "name": "first"}
    second = {**COMMON, "name": "second", "start_from": "run:first", "seed": 2}
    return {"name": "both", "runs": [first, second], "average": AVERAGE, **changes}


def written(folder, content):
    (folder / "recipe.yaml").write_text(yaml.safe_dump(content))
    return folder / "recipe.yaml"


def load_recipe(file):
    config = load_experiment(file)
    return Recipe(config, file.parent, str(file))


def train(file, run, data):
    return run_here(main, file, "--run", run, "--threads", 1, data=data)


def test_one_command_trains_and_averages_all_runs_and_a_second_one_trains_nothing(data, tmp_path):
    first = {**COMMON, "name": "first", "phases": [{**PHASE, "stop_after": 1}]}
    second = {**COMMON, "name": "second", "start_from": "run:first", "seed": 2}
    file = written(tmp_path, recipe(runs=[first, second]))
    done = train(file, tmp_path / "run", data)
    assert done.returncode == 0, done.stderr
    assert "run 2 of 2: second" in done.stdout
    result = tmp_path / "run" / "both.safetensors"
    assert str(result) in done.stdout
    average = TrainedCaptioner.load(result)
    members = [TrainedCaptioner.load(tmp_path / "run" / "second" / f"only-{epoch}.safetensors") for epoch in (1, 2)]
    for name, tensor in average.captioner.state_dict().items():
        expected = torch.stack([member.captioner.state_dict()[name] for member in members]).mean(dim=0)
        torch.testing.assert_close(tensor, expected)
    assert average.record["name"] == "both"
    assert [(member["name"], member["seed"]) for member in average.record["averaged"]] == [("second", 2)] * 2
    assert [member["dev"]["epoch"] for member in average.record["averaged"]] == [1, 2]
    assert len((tmp_path / "run" / "first" / "log.jsonl").read_text().splitlines()) == 1
    logs = {log: log.read_text() for log in (tmp_path / "run").rglob("log.jsonl")}
    assert len(logs) == 2
    again = train(file, tmp_path / "run", data)
    assert again.returncode == 0, again.stderr
    assert "run 1 of 2" not in again.stdout
    assert {log: log.read_text() for log in logs} == logs


def test_a_run_can_use_the_backbone_that_another_run_has_fine_tuned(data, tmp_path):
    tuned = {**COMMON, "name": "tuned", "phases": [{**PHASE, "backbone_learning_rate": 1e-3, "epochs": 1}]}
    other = {**COMMON, "name": "other", "backbone": "run:tuned", "phases": [{**PHASE, "epochs": 1}]}
    done = train(written(tmp_path, recipe(runs=[tuned, other], average=[])), tmp_path / "run", data)
    assert done.returncode == 0, done.stderr
    first, second = (TrainedCaptioner.load(tmp_path / "run" / name / "best.safetensors") for name in ("tuned", "other"))
    weights = second.backbone.state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in first.backbone.state_dict().items())
    assert not torch.equal(next(second.captioner.parameters()), next(first.captioner.parameters()))
    assert {entry["name"] for entry in first.caption_provenance} <= {
        entry["name"] for entry in second.record["backbone_trained_on"]
    }


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"runs": []}, "runs: expected a list of experiments, found none"),
        ({"runs": [{**COMMON, "name": "a", "nmae": 1}]}, r"runs\[0\]: unknown key 'nmae'"),
        ({"runs": [{**COMMON, "name": "a", "start_from": "run:b"}]}, r"runs\[0\]: run:b: no such run before this one"),
        ({"runs": 2 * [{**COMMON, "name": "a"}], "average": []}, r"runs\[1\]: name: two runs are named 'a'"),
        ({"average": AVERAGE[:1]}, "average: expected two models or more, found one"),
        ({"average": [*AVERAGE, {**AVERAGE[0], "epoch": 3}]}, r"average\[2\]: there is no epoch 3 of a phase 'only'"),
        ({"average": [*AVERAGE, {**AVERAGE[0], "run": "third"}]}, r"average\[2\]: there is no epoch 1 .* run 'third'"),
        ({"average": [{"run": "first"}]}, r"average\[0\]: phase is missing"),
    ],
)
def test_a_malformed_recipe_is_refused_with_the_place(tmp_path, changes, complaint):
    file = written(tmp_path, recipe(**changes))
    with pytest.raises(ConfigError, match=complaint):
        load_recipe(file)
