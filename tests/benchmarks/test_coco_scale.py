"""The parts of the extrapolation to COCO: the share of the model's products."""

import torch

from benchmarks.coco_scale import phase_of, share_of_products
from benchmarks.generated_data import DataSize, write_data
from benchmarks.training import measured_phases, on_data
from tests.training.small_flickr8k import write_config

SIZE = DataSize(images=40, words=20, tokens=4, token_width=8)


def test_the_share_of_products_is_that_of_matrices():
    x = torch.randn(400, 400)
    assert share_of_products(lambda: [x @ x for _ in range(5)]) > 0.5
    assert share_of_products(lambda: [x.sin() for _ in range(5)]) < 0.1


def test_an_epoch_is_extrapolated_from_the_steps_of_the_phase(tmp_path):
    section = write_data(tmp_path, SIZE, 0, photographs=False)
    phase = {"name": "p", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 4, "pairs": True}
    model = {"d_model": 16, "heads": 2, "d_ff": 16, "memory_slots": 2}
    config = write_config(tmp_path / "config.yaml", phases=[phase], model=model)
    (experiment,) = measured_phases(config).values()
    found = phase_of(on_data(experiment, section), tmp_path, torch.device("cpu"), steps=3, settle=1)
    assert found["steps_per_epoch"] == 40 * 5 / 4
    assert found["hours_per_epoch"] == round(50 * found["step_ms"] / 3.6e6, 2)
    assert 0 < found["share_of_products"] < 1
