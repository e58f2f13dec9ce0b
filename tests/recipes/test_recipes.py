"""The experiment files of the bundles."""

import pytest

from training.configs.schema import RecipeConfig
from training.engine.experiment import load_experiment
from training.engine.recipe import Recipe
from training.paths import CHECKOUT


@pytest.mark.parametrize("name", ["smart_home_8", "open_home_1"])
def test_training_accepts_the_recipe_of_a_bundle(tmp_path, name):
    config = load_experiment(CHECKOUT / "recipes" / f"{name}.yaml")
    assert isinstance(config, RecipeConfig)
    assert Recipe(config, tmp_path, name).runs[-1].config.name == "rewarded-2"
