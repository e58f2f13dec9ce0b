"""The precision of a run: measured, as the experiment says, or that with which the run began."""

import pytest
import torch

from training.configs.schema import ExperimentConfig, PhaseConfig
from training.engine import precision as module
from training.engine.precision import choose_precision

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def config(precision="auto", images=4, accumulate=1, **model):
    phase = PhaseConfig(name="p", epochs=1, learning_rate=1.0, images_per_batch=images, accumulate=accumulate)
    return ExperimentConfig(name="e", backbone="b", phases=[phase], precision=precision, model=model)


def unexpected(product):
    pytest.fail("products were timed where there is nothing to choose")


@pytest.fixture
def instructions(monkeypatch):
    monkeypatch.setattr(module, "has_bf16_instructions", lambda device: True)


@pytest.fixture
def no_instructions(monkeypatch):
    monkeypatch.setattr(module, "has_bf16_instructions", lambda device: False)


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize(("speeds", "precision"), [((110.0, 51.0), "fp32"), ((140.0, 370.0), "bf16")])
def test_a_run_on_a_cpu_takes_the_precision_that_is_faster_there(speeds, precision):
    choice = choose_precision(config(), CPU, measure=lambda product: speeds)
    assert choice.precision == precision
    assert choice.message is not None
    assert f"precision: {precision}, the faster one here" in choice.message
    assert f"{speeds[1]:.0f} GFLOPS in bf16 and {speeds[0]:.0f} in fp32" in choice.message
    assert "`precision:` in the experiment file overrides it" in choice.message


@pytest.mark.usefixtures("no_instructions")
def test_without_bf16_instructions_nothing_is_timed():
    assert choose_precision(config(), CPU, measure=unexpected) == ("fp32", None)
    assert choose_precision(config("bf16"), CPU, measure=unexpected) == ("bf16", None)
    assert choose_precision(config(), GPU, measure=unexpected) == ("fp16", None)


@pytest.mark.usefixtures("instructions")
def test_the_experiment_and_a_gpu_decide_without_a_measurement():
    assert choose_precision(config("fp32"), CPU, measure=unexpected) == ("fp32", None)
    assert choose_precision(config(), GPU, measure=unexpected) == ("bf16", None)


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("device", [CPU, GPU])
def test_a_resumed_run_keeps_its_precision_and_says_so(device):
    choice = choose_precision(config(), device, former="fp32", measure=unexpected)
    assert choice.precision == "fp32"
    assert choice.message is not None
    assert "precision: fp32, with which this run began" in choice.message


@pytest.mark.usefixtures("no_instructions")
def test_a_resumed_run_whose_precision_is_no_longer_fast_changes_it_and_says_so():
    choice = choose_precision(config(), CPU, former="bf16", measure=unexpected)
    assert choice == (
        "fp32",
        "precision: fp32 from here on, because this device has no bf16 instructions; this run began in bf16",
    )


def test_a_resumed_run_takes_the_precision_that_its_experiment_now_names_and_says_so():
    choice = choose_precision(config("fp32"), CPU, former="bf16", measure=unexpected)
    assert choice == ("fp32", "precision: fp32 from here on, as the experiment file says; this run began in bf16")
