"""A run on an NVIDIA GPU has the losses of a run on the CPU; also compiled, and nearly in bf16. Copies do not wait."""

import pytest
import torch

from tests.training.event_files import scalars
from tests.training.small_flickr8k import write_config
from training.engine.distributed import Processes, choose_device
from training.engine.experiment import load_run
from training.engine.trainer import Trainer
from training.models.captioner import Visual

pytestmark = pytest.mark.needs_gpu

# Twelve images: each of these phases has one step.
XE = {"name": "frozen", "epochs": 1, "learning_rate": 1e-4, "schedule": "constant", "images_per_batch": 12}
END_TO_END = {**XE, "name": "end_to_end", "backbone_learning_rate": 1e-5, "crop": 0.8, "average": 0.5}
SCST = {**XE, "name": "rewarded", "objective": "self_critical", "beam_size": 3}
LESSON = {**XE, "epochs": 7, "learning_rate": 3e-3, "images_per_batch": 5}
MODEL = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.0}


@pytest.fixture(autouse=True)
def _exact_convolutions(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture(scope="module")
def taught(data, tmp_path_factory):
    """A model whose captions have rewards."""
    folder = tmp_path_factory.mktemp("taught")
    run(folder, data, "cpu", [LESSON]).task.save(folder / "taught.safetensors", {})
    return folder / "taught.safetensors"


def run(folder, data, device, phases, **changes):
    config = load_run(write_config(folder / "config.yaml", phases=phases, model=MODEL, **changes))
    trainer = Trainer(config, data, folder / "run", folder / "cache", Processes(choose_device(device)))
    trainer.run()
    return trainer


def losses(folder, data, device, taught, **changes):
    """Train a step of each phase and return the losses."""
    folder.mkdir()
    trained = run(folder, data, device, [XE, END_TO_END, SCST], start_from=str(taught), **changes).folder
    assert max(scalars(trained, "train/reward").values()) > 0
    found = list(scalars(trained, "train/loss").values())
    assert len(found) == 3
    assert abs(found[2]) > 1e-3
    return found


def test_the_losses_are_those_of_the_cpu(data, taught, tmp_path):
    expected = losses(tmp_path / "on_the_cpu", data, "cpu", taught)
    assert losses(tmp_path / "on_the_gpu", data, "cuda", taught) == pytest.approx(expected, abs=1e-3)


def test_the_losses_in_bf16_are_near_those_in_fp32(data, taught, tmp_path):
    expected = losses(tmp_path / "fp32", data, "cuda", taught)
    found = losses(tmp_path / "bf16", data, "cuda", taught, precision="bf16")
    assert found[:2] == pytest.approx(expected[:2], rel=0.05)  # the captions of a search may differ


def test_compiled_modules_have_the_same_losses(data, taught, tmp_path):
    expected = losses(tmp_path / "eager", data, "cuda", taught)
    assert losses(tmp_path / "compiled", data, "cuda", taught, compile=True) == pytest.approx(expected, abs=1e-3)


def test_batches_are_pinned_and_copied_to_a_gpu_in_the_background():
    processes = Processes(torch.device("cuda", 0))
    batch = Visual(torch.arange(6.0).reshape(2, 3))
    pinned = processes.pin(batch)
    assert pinned.tokens.is_pinned()
    copied = processes.to_device((pinned, [torch.ones(1)]))
    assert isinstance(copied[0], Visual)
    assert copied[0].mask is None
    assert copied[1][0].device == processes.device
    assert torch.equal(copied[0].tokens.cpu(), batch.tokens)
