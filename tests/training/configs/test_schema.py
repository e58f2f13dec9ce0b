"""Experiment files: malformed values are refused with their place."""

from pathlib import Path

import pytest
import yaml

from training.configs.parsing import build_config
from training.configs.schema import ExperimentConfig, RecipeConfig
from training.engine.experiment import load_experiment, load_run
from training.engine.recipe import Recipe
from training.errors import ConfigError

ROOT = Path(__file__).parents[3]
CONFIGS = sorted([*(ROOT / "training" / "configs").rglob("*.yaml"), *(ROOT / "recipes").glob("*.yaml")])
GOOD = {"name": "x", "backbone": "b.onnx", "phases": [{"name": "p", "epochs": 1, "learning_rate": 0.1}]}


def phase(**changes):
    return {"phases": [{"name": "p", "epochs": 1, "learning_rate": 0.1, **changes}]}


def coco(**options):
    return {"data": {"dataset": "coco", "options": options}}


def written(path, value):
    (path / "config.yaml").write_text(value if isinstance(value, str) else yaml.safe_dump(value))
    return path / "config.yaml"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_experiment_file_of_the_repository_is_well_formed(path):
    config = load_experiment(path)
    if isinstance(config, RecipeConfig):
        assert Recipe(config, Path("folder"), str(path)).runs
    assert config.name


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"evaluation": {"length_penalty": 1.0}}, "length_penalty needs finished apart"),
        ({"evaluation": {"min_words": 30}}, "min_words 30 is more than max_words 20"),
        ({"nmae": "y"}, "unknown key 'nmae' .did you mean name"),
        ({"family": "m2", "model": {"memory_slot": 20}}, "model: unknown key 'memory_slot' .did you mean memory_slots"),
        ({"phases": []}, "phases: expected a list of phases"),
        ({"phases": [{"name": "p", "epochs": 1}]}, r"phases\[0\]: learning_rate is missing"),
        ({"phases": [{"name": "p", "epochs": "two", "learning_rate": 1}]}, r"phases\[0\]: epochs: expected int"),
        ({"precision": "fp8"}, "precision must be one of auto, fp32, bf16, fp16, not 'fp8'"),
        ({"image_size": -1}, "image_size must be at least 0"),
        ({"data": 3}, "data: expected keys"),
        ({"data": {"options": {"karpathy": "x"}}}, "data: options: unknown key 'karpathy'; known are folder"),
        ({"data": {"dataset": "coco"}}, "data: options: give karpathy .* or captions"),
        (coco(karpathy="a.json", captions={"train": "b.json", "dev": "c.json"}), "data: options: give karpathy"),
        (
            {"data": {"dataset": "looked_at", "options": {"sources": "door_detect"}}},
            "options: sources: expected a list",
        ),
        ({"data": {"dataset": "folder", "options": {"folder": "x", "dev_share": "0.2"}}}, "dev_share: expected float"),
        ({"data": {"dataset": "table", "options": {"table": {}}}}, "options: table: expected a file, or one for each"),
        (coco(captions={"dev": "b.json"}), "data: options: captions: a file for train is needed"),
        ({"features": {"store": "s"}}, "give backbone or features, one of the two"),
        ({"backbone": ""}, "give backbone or features, one of the two"),
        ({"features": {"hdf5": "s", "tsv": "t"}}, "features: give one of hdf5, tsv, not several"),
        ({"features": {"tsv": "t", "image_sizes": "a.json"}}, "features: image_sizes is for hdf5 and npz"),
        (phase(pairs=True, objective="self_critical"), r"phases\[0\]: pairs: self_critical has no use"),
        (phase(reward_documents="words"), r"phases\[0\]: reward_documents must be one of images, captions"),
        (
            {"backbone": "", "features": {"store": "s"}, **phase(backbone_learning_rate=1.0)},
            r"phases\[0\]: backbone_learning_rate: features have no backbone",
        ),
        (phase(objective="reinforce"), r"phases\[0\]: objective must be one of cross_entropy, .*self_critical"),
        (phase(schedule="noam"), r"phases\[0\]: schedule noam needs warmup_steps"),
        (
            phase(schedule="hold", warmup_steps=30, hold_steps=20, decay_steps=40),
            "warmup_steps <= hold_steps < decay_steps, not 30, 20, 40",
        ),
        (phase(objective="self_critical", beam_size=0), r"phases\[0\]: beam_size must be at least 1, not 0"),
        (phase(accumulate=0), r"phases\[0\]: accumulate must be at least 1, not 0"),
        ({"phases": 2 * GOOD["phases"]}, "phases: two are named 'p'"),
        ({"backbone": "", "features": {"store": "s"}, "yolox": "y.onnx"}, "yolox: features have no backbone"),
        (phase(from_best=True), r"phases\[0\]: from_best: no phase comes before it"),
        ({"family": "lstm2000"}, "family must be one of smart.*, not 'lstm2000'"),
        (phase(stop_after=2), r"phases\[0\]: stop_after must be at most epochs, 1, not 2"),
        (phase(optimizer={"betas": [1.0, 0.9]}), r"phases\[0\]: optimizer: betas must be two numbers of at least 0"),
        (phase(clipping={"limit": 0}), r"phases\[0\]: clipping: limit must be more than 0"),
        ({"evaluation": {"beam_size": 0}}, "evaluation: beam_size must be at least 1, not 0"),
        (phase(label_smoothing=1.0), r"phases\[0\]: label_smoothing must be less than 1"),
        (phase(cider_btw_reward=0.1), r"phases\[0\]: cider_btw_reward is for self_critical, cross_entropy has no"),
        (phase(average=1.0), r"phases\[0\]: average must be less than 1"),
        (phase(crop=0.0), r"phases\[0\]: crop must be more than 0, not 0.0"),
        (phase(crop=1.5), r"phases\[0\]: crop must be at most 1, not 1.5"),
    ],
)
def test_a_malformed_value_is_refused_with_its_place(tmp_path, change, complaint):
    with pytest.raises(ConfigError, match=complaint):
        load_run(written(tmp_path, {**GOOD, **change}))


def test_keys_are_set_by_their_path(tmp_path):
    settings = ["phases.0.epochs=3", "model.heads=4", "optimizer_of=0", "data={max_words: 9}"]
    path = written(tmp_path, GOOD)
    with pytest.raises(ConfigError, match="unknown key 'optimizer_of'"):
        load_experiment(path, settings)
    config = load_experiment(path, [*settings[:2], settings[3]])
    assert (config.phases[0].epochs, config.phases[0].name) == (3, "p")
    assert (config.model, config.data.max_words) == ({"heads": 4}, 9)


def test_a_key_that_is_set_in_one_run_of_a_recipe_stays_in_the_others(tmp_path):
    text = yaml.safe_dump({"name": "r", "runs": [GOOD, {**GOOD, "name": "y"}]})
    assert "&id" in text  # both runs have the same phases
    config = load_experiment(written(tmp_path, text), ["runs.1.phases.0.epochs=7"])
    assert [run["phases"][0]["epochs"] for run in config.runs] == [1, 7]


def test_keys_that_are_gone_are_ignored_in_a_record_of_an_earlier_version():
    gone = {"fresh_captioner": True, "cached_views": 2, "objective": "language"}
    phases = [{"name": "p", "epochs": 1, "learning_rate": 0.1, **gone}]
    data = {"text": "captions.json", "max_words": 9}
    record = {**GOOD, "task": "captioning", "phases": phases, "data": data}
    config = build_config(ExperimentConfig, record, "record", ignore_unknown_keys=True)
    assert (config.phases[0].name, config.data.max_words) == ("p", 9)


def test_an_experiment_has_the_keys_of_its_base_and_replaces_some(tmp_path):
    phases = [*GOOD["phases"], {"name": "q", "epochs": 2}]
    base = {**GOOD, "model": {"heads": 4}, "data": {"max_words": 9}, "phases": phases}
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base))
    changes = {"base": "base.yaml", "name": "y", "model": {"d_ff": 8}, "data": {"minimum_count": 3}}
    changes["phases"] = {1: {"learning_rate": 0.2}}
    config = load_run(written(tmp_path, changes))
    assert (config.name, config.backbone, config.model) == ("y", "b.onnx", {"d_ff": 8})
    assert (config.data.max_words, config.data.minimum_count) == (9, 3)
    assert [(own.name, own.epochs, own.learning_rate) for own in config.phases] == [("p", 1, 0.1), ("q", 2, 0.2)]
    recipe = load_experiment(written(tmp_path, {"name": "r", "runs": [changes]}))
    assert recipe.runs[0]["phases"][1]["epochs"] == 2


PHASES = "phases: [{name: p, epochs: 1, learning_rate: 5e-4}]\n"


@pytest.mark.parametrize(
    ("content", "setting", "complaint"),
    [
        ("- 1", "", r"config\.yaml"),
        ("name: [", "", r"config\.yaml"),
        (f"{PHASES}seed: 2024-99-99\n", "", r"config\.yaml: not YAML: month must be in 1..12"),
        (f"{PHASES}name: x\nseed: 1\nseed: 2\n", "", r"the key 'seed' is there twice\n.*line 4"),
        ({**GOOD, "name": "../../x"}, "", r"name: it becomes the name of a folder or file; .* '\.\./\.\./x'"),
        (phase(learning_rate="0.1"), "", "learning_rate: expected float, found '0.1'"),
        (phase(learning_rate=float("nan")), "", "learning_rate: .*finite number, found nan"),
        (f"{PHASES}name: 2024\n", "", "name: expected str, found 2024"),
        ({"base": "nowhere.yaml"}, "", r"nowhere\.yaml: No such file"),
        ({"base": "folder/../config.yaml"}, "", "base: it is its own base"),
        ({"base": "good.yaml", "phases": {3: {"epochs": 2}}}, "", "phases: its base has 1 entries, numbered from 0"),
        (GOOD, "epochs", "epochs: expected KEY=VALUE"),
        (GOOD, "phases.1.epochs=1", "a list of 1; expected a number from 0 to 0"),
        (GOOD, "phases.first.epochs=1", "first is in a list"),
        (GOOD, "name.long=1", "long is below 'x', which has no keys"),
        (GOOD, "phases=[", "not YAML"),
    ],
)
def test_a_mistake_in_a_file_or_a_setting_is_one_sentence_with_its_place(tmp_path, content, setting, complaint):
    (tmp_path / "good.yaml").write_text(yaml.safe_dump(GOOD))
    (tmp_path / "folder").mkdir()
    content = {**GOOD, **content} if isinstance(content, dict) and "base" not in content else content
    with pytest.raises(ConfigError, match=complaint):
        load_experiment(written(tmp_path, content), [setting] if setting else [])
