"""The command that joins captioners: the mean of their probabilities, and what cannot be joined."""

from dataclasses import replace

import pytest
import torch

from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import padded_logits, tiny_captioner, tiny_captions, tiny_trained, tiny_visual
from tests.training.commands import run_here
from training.engine.checkpoint_captions import DatasetCaptioner
from training.engine.trained_captioner import TrainedCaptioner
from training.ensemble import main

WORDS = Vocabulary((*SPECIAL, *(f"w{index}" for index in range(4, 30))))
FAMILIES = ("smart", "m2", "up_down")


def trained(family):
    experiment = {
        "name": family,
        "features": {"npz": "features"},
        "family": family,
        "data": {"max_words": 10},
        "phases": [{"name": "xe", "epochs": 1, "learning_rate": 1e-3}],
    }
    record = {"name": family, "features": {"kind": "npz"}, "experiment": experiment, "dev": {"cider": 1.0}}
    return TrainedCaptioner(family, tiny_captioner(family), None, WORDS, record, Search(max_words=10))


@pytest.fixture
def paths(tmp_path):
    found = [tmp_path / f"{family}.safetensors" for family in FAMILIES]
    for path, family in zip(found, FAMILIES, strict=True):
        trained(family).save(path)
    return found


def test_an_ensemble_of_any_families_has_the_mean_of_their_probabilities(paths, tmp_path):
    assert run_here(main, *paths, "-o", tmp_path / "joined.safetensors").returncode == 0
    joined = TrainedCaptioner.load(tmp_path / "joined.safetensors")
    visual, words = tiny_visual(3, 6, seed=1, ragged=True), tiny_captions(3, 2, seed=1)
    with torch.inference_mode():
        members = [padded_logits(tiny_captioner(family), visual, words).softmax(-1) for family in FAMILIES]
        found = padded_logits(joined.captioner, visual, words).softmax(-1)
    torch.testing.assert_close(found, torch.stack(members).mean(0), atol=1e-6, rtol=1e-4)
    assert joined.family == "ensemble"
    assert [member["family"] for member in joined.record["members"]] == list(FAMILIES)
    assert "dev" not in joined.record
    together = DatasetCaptioner(*paths)
    assert together.trained.record["name"] == "ensemble of 3: smart, m2, up_down"
    with torch.inference_mode():
        again = padded_logits(together.trained.captioner, visual, words).softmax(-1)
    assert torch.equal(again, found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"vocabulary": Vocabulary((*SPECIAL, *(f"v{index}" for index in range(4, 30))))},
            "differ in their vocabulary",
        ),
        ({"record": {**trained("smart").record, "features": {"kind": "tsv"}}}, "differ in their features"),
        ({"backbone": tiny_trained().backbone}, "differ in their backbone"),
    ],
)
def test_captioners_that_do_not_fit_are_refused_by_their_files(change, message, paths, tmp_path):
    replace(trained("smart"), **change).save(tmp_path / "other.safetensors")
    done = run_here(main, paths[0], tmp_path / "other.safetensors", "-o", tmp_path / "joined.safetensors")
    assert done.returncode == 1
    assert message in done.stderr
    assert "other.safetensors" in done.stderr
    assert not (tmp_path / "joined.safetensors").exists()
