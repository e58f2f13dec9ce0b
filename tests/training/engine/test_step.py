"""A step is the same in one process or two, whole or in parts; a diverging loss ends the run."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest
import torch

from tests.training.event_files import scalars
from tests.training.processes import run_in_processes
from tests.training.small_flickr8k import write_config
from training.engine.distributed import PRECISIONS
from training.engine.experiment import load_run
from training.engine.trainer import Trainer
from training.errors import ConfigError, TrainingError
from training.objectives import OBJECTIVES
from training.objectives.cross_entropy import CrossEntropy
from training.objectives.objective import BatchLoss

# Twelve images: two batches of five, whose captions no two processes share evenly, and a short one.
LEARNING = {"name": "learning", "epochs": 14, "learning_rate": 3e-3, "schedule": "constant", "images_per_batch": 5}
# Runs that are compared differ by the rounding of sums, which training amplifies. Adam divides a gradient that is
# nearly 0 (that of the keys' biases) by its own size, so the rounding error becomes a step of the learning rate; a
# hidden unit near 0 is on in one run and off in the other; the reward changes with a word. So they begin with a
# captioner whose beams are far apart, take few steps, and their learning rates are small: relative changes of 1e-7 in
# the first weights change no loss by more than 3e-7, and changes of 1e-3 change no reward.
XE = {**LEARNING, "name": "frozen", "epochs": 1, "learning_rate": 1e-4}
END_TO_END = {**XE, "name": "end_to_end", "backbone_learning_rate": 1e-5, "crop": 0.8}
SCST = {**XE, "name": "rewarded", "objective": "self_critical", "beam_size": 3, "cider_btw_reward": 0.1}
VIEWS = {**XE, "name": "views", "crop": 0.8}
STEPS = 3 * 4


def experiment(folder, *phases, **changes):
    folder.mkdir(exist_ok=True)
    model = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.0}
    evaluation = {"images_per_batch": 3, "beam_size": 2}
    changes = {"model": model, "seed": 2, "evaluation": evaluation, **changes}
    return write_config(folder / "config.yaml", phases=list(phases), **changes)


def trained(folder, data, *phases, **changes):
    run = folder / "run"
    Trainer(load_run(experiment(folder, *phases, **changes)), data, run, data / "features").run()
    return run


def torchrun(config, run, data):
    """Two processes on the CPU, as a user starts them."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--"]
    command += ["training.train", str(config), "--run", str(run), "--threads", "1", "--device", "cpu"]
    environment = {**os.environ, "SMART_CAPTION_DATA": str(data), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def learnt(data, tmp_path_factory):
    """A captioner that has learnt the drawings, as ``start_from``."""
    run = trained(tmp_path_factory.mktemp("learnt"), data, LEARNING)
    losses = list(scalars(run, "train/loss").values())
    assert losses[-1] < losses[0] / 3
    return str(run / "best.safetensors")


@pytest.fixture(scope="module")
def whole(data, learnt, tmp_path_factory):
    """A run in one process, batch by batch."""
    return trained(tmp_path_factory.mktemp("whole"), data, XE, END_TO_END, VIEWS, SCST, start_from=learnt)


def assert_same_curves(run, whole):
    losses, rewards = scalars(whole, "train/loss"), scalars(whole, "train/reward")
    assert len(losses) == STEPS
    assert min(rewards.values()) > 0.1
    assert min(abs(losses[step]) for step in rewards) > 1e-3
    assert scalars(run, "train/loss") == pytest.approx(losses, abs=5e-6)
    assert scalars(run, "train/reward") == pytest.approx(rewards, abs=1e-5)
    # A drawing's flat background has one value in thousands of places, which all pass a ReLU's kink at the same time.
    for module, tolerance in (("captioner", 1e-4), ("backbone", 0.02)):
        norms = scalars(whole, f"gradient_norm/{module}")
        assert scalars(run, f"gradient_norm/{module}") == pytest.approx(norms, rel=tolerance)
    assert scalars(run, "dev/cider") == pytest.approx(scalars(whole, "dev/cider"), abs=1e-5)


@pytest.mark.long
def test_two_processes_have_the_same_losses_as_one(whole, data, learnt, tmp_path):
    config = experiment(tmp_path, XE, END_TO_END, VIEWS, SCST, start_from=learnt)
    done = torchrun(config, tmp_path / "run", data)
    assert done.returncode == 0, done.stderr
    assert_same_curves(tmp_path / "run", whole)
    assert done.stdout.count("best model by dev CIDEr") == 1
    assert len((tmp_path / "run" / "log.jsonl").read_text().splitlines()) == 4


def test_accumulated_gradients_equal_those_of_the_whole_batch(whole, data, learnt, tmp_path):
    parts_of_phases = ((XE, 2), (END_TO_END, 3), (VIEWS, 2), (SCST, 5))
    phases = [{**phase, "accumulate": parts} for phase, parts in parts_of_phases]
    assert_same_curves(trained(tmp_path, data, *phases, start_from=learnt), whole)


def test_more_processes_or_parts_than_images_are_refused(data, tmp_path):
    with pytest.raises(ConfigError, match="images_per_batch is 5, too few"):
        trained(tmp_path, data, {**XE, "accumulate": 6})


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_the_captioner_computes_in_the_precision_of_the_experiment(data, tmp_path, precision):
    seen = []

    class Watching(CrossEntropy):
        def __call__(self, captioner, visual, *arguments):
            seen.append(captioner.encode(visual).caches[0].keys.dtype)
            return super().__call__(captioner, visual, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(OBJECTIVES, "cross_entropy", Watching)
        trained(tmp_path, data, {**XE, "images_per_batch": 12}, precision=precision)
    assert set(seen) == {PRECISIONS[precision] or torch.float32}


@pytest.mark.long
def test_a_photograph_that_one_process_cannot_read_ends_all_processes_with_one_sentence(data, tmp_path):
    broken = shutil.copytree(data, tmp_path / "data")
    with zipfile.ZipFile(data / "flickr8k" / "images_224.zip") as old:
        photographs = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(broken / "flickr8k" / "images_224.zip", "w") as new:
        for name, content in photographs.items():
            new.writestr(name, b"no picture" if name == "train_5.jpg" else content)
    arguments = (experiment(tmp_path / "run", END_TO_END), "--run", tmp_path / "run" / "run", "--device", "cpu")
    done = run_in_processes(2, "training.train", *arguments, "--threads", 1, SMART_CAPTION_DATA=str(broken))
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if "error: " in line]  # perhaps after another process's progress
    assert len(said) == 1, done.stderr
    assert "train_5.jpg: it is damaged or not an image" in said[0]


# -- what must not be learnt ---------------------------------------------------------------------------------


def test_captions_sampled_with_weights_that_are_not_finite_do_not_hide_the_reason(data, learnt, tmp_path):
    # Three steps more are computed with such weights before their losses are read.
    wild = {**SCST, "name": "wild", "learning_rate": 1e30, "images_per_batch": 3}
    with pytest.raises(TrainingError, match="the loss is nan, at wild 1/1, step 1"):
        trained(tmp_path, data, wild, start_from=learnt, log_every=10)


def test_a_gradient_that_is_not_finite_ends_the_run_before_the_weights_change(data, tmp_path, monkeypatch):
    class Edge(CrossEntropy):
        """A loss of 0 with an infinite slope."""

        def __call__(self, captioner, *arguments):
            return BatchLoss((super().__call__(captioner, *arguments).loss * 0).sqrt())

    monkeypatch.setitem(OBJECTIVES, "cross_entropy", Edge)
    with pytest.raises(TrainingError, match="the norm of the captioner's gradient is nan, at frozen 1/1, step 0"):
        trained(tmp_path, data, XE)
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()
