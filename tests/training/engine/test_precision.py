"""The precision of a run: measured, as the experiment says, or that with which the run began."""

import pytest
import torch

from training.configs.schema import ExperimentConfig, PhaseConfig
from training.engine import precision as module
from training.engine.precision import choose_precision

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def config(precision="auto"):
    phase = PhaseConfig(name="p", epochs=1, learning_rate=1.0, images_per_batch=4)
    return ExperimentConfig(name="e", backbone="b", phases=[phase], precision=precision)


@pytest.mark.parametrize(("speeds", "precision"), [((110.0, 51.0), "fp32"), ((140.0, 370.0), "bf16")])
def test_a_run_on_a_cpu_takes_the_precision_that_is_faster_there(speeds, precision, monkeypatch):
    monkeypatch.setattr(module, "has_bf16_instructions", lambda device: True)
    monkeypatch.setattr(module, "measure_speeds", lambda *product: speeds)
    choice = choose_precision(config(), CPU)
    assert choice.precision == precision
    assert f"precision: {precision}, the faster one here" in choice.message
    assert f"{speeds[1]:.0f} GFLOPS in bf16 and {speeds[0]:.0f} in fp32" in choice.message
    assert "`precision:` in the experiment file overrides it" in choice.message


LATER = "precision: fp32 from here on, {}; this run began in bf16"


@pytest.mark.parametrize(
    ("native", "given", "device", "former", "expected"),
    [
        (False, "auto", CPU, None, ("fp32", None)),
        (False, "bf16", CPU, None, ("bf16", None)),
        (False, "auto", GPU, None, ("fp16", None)),
        (True, "fp32", CPU, None, ("fp32", None)),
        (True, "auto", GPU, None, ("bf16", None)),
        (False, "auto", CPU, "bf16", ("fp32", LATER.format("because this device has no bf16 instructions"))),
        (True, "fp32", CPU, "bf16", ("fp32", LATER.format("as the experiment file says"))),
    ],
)
def test_nothing_is_timed_where_there_is_no_choice(native, given, device, former, expected, monkeypatch):
    monkeypatch.setattr(module, "has_bf16_instructions", lambda device: native)
    monkeypatch.delattr(module, "measure_speeds")
    assert choose_precision(config(given), device, former=former) == expected


@pytest.mark.parametrize("device", [CPU, GPU])
def test_a_resumed_run_keeps_its_precision_and_says_so(device, monkeypatch):
    monkeypatch.setattr(module, "has_bf16_instructions", lambda device: True)
    monkeypatch.delattr(module, "measure_speeds")
    choice = choose_precision(config(), device, former="fp32")
    assert choice.precision == "fp32"
    assert "precision: fp32, with which this run began" in choice.message
