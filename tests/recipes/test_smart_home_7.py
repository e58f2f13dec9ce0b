"""The experiment file of the default bundle."""

from training.configs.schema import RecipeConfig
from training.engine.experiment import load_experiment
from training.engine.recipe import Recipe
from training.paths import CHECKOUT


def test_training_accepts_the_recipe_of_the_default_bundle(tmp_path):
    config = load_experiment(CHECKOUT / "recipes" / "smart_home_7.yaml")
    assert isinstance(config, RecipeConfig)
    runs = Recipe(config, tmp_path, "smart_home_7").runs
    assert [run.name for run in runs] == ["captions", "annealed", "rewarded-1", "rewarded-2"]
