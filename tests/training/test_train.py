"""``python -m training.train``: a whole run, and a run that is killed and resumed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch

from tests.training.commands import run_here
from tests.training.event_files import scalars
from tests.training.small_flickr8k import write_config
from training.checkpoint import load_checkpoint
from training.engine.trained_captioner import TrainedCaptioner
from training.evaluate import main as evaluate_main
from training.train import main


def train(config, run, data, *settings):
    return run_here(main, config, *settings, "--run", run, "--threads", 1, data=data)


def log_of(run):
    """The epochs of a run without their times."""
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in entry.items() if key not in ("seconds", "time")} for entry in entries]


def without_seconds(state):
    """Remove the times from the state of a checkpoint."""
    history = [{**entry, "seconds": None} for entry in state["history"]]
    return {**state, "seconds": None, "history": history}


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """The folder of a run that was not stopped."""
    folder = tmp_path_factory.mktemp("finished")
    done = train(write_config(folder / "config.yaml"), folder / "run", data)
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout)
    return folder / "run"


def test_every_epoch_is_logged_with_loss_and_dev_scores(finished):
    log = log_of(finished)
    assert [(entry["phase"], entry["epoch"]) for entry in log] == [
        ("frozen", 1), ("frozen", 2), ("end_to_end", 1), ("self_critical", 1), ("self_critical", 2),
    ]  # fmt: skip
    assert all("cider" in entry and "bleu_4" in entry for entry in log)
    assert all(entry["loss"] > 0 and "reward" not in entry for entry in log[:3])
    assert all(0 <= entry["reward"] <= 10 and entry["learning_rate"] == 1e-3 for entry in log[3:])
    assert log[1]["loss"] < log[0]["loss"]


def test_evaluation_by_the_words_of_training_has_the_scores_of_the_log(finished, data):
    written = finished.parent / "scores.json"
    done = run_here(
        evaluate_main, "--checkpoint", finished / "best.safetensors", "--dataset", finished.parent / "config.yaml",
        "--tokenizer", "words", "--resamples", 0, "--json", written, "--device", "cpu", "--batch-size", 3, data=data,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (model,) = json.loads(written.read_text())["models"].values()
    dev = TrainedCaptioner.load(finished / "best.safetensors").record["dev"]
    for name in ("bleu_4", "rouge_l", "cider"):
        assert model["scores"][name] == pytest.approx(dev[name], abs=1e-4)


def test_a_run_says_its_data_and_a_check_says_that_nothing_is_wrong(finished, data, tmp_path):
    config = write_config(tmp_path / "config.yaml")
    checked = train(config, tmp_path / "run", data, "phases.0.epochs=1", "--check")
    assert checked.returncode == 0, checked.stdout
    assert "small: 12 train, 4 dev, 2 test pictures; nothing is wrong" in checked.stdout
    assert not (tmp_path / "run").exists()
    said = (finished.parent / "said.txt").read_text()
    assert "data: 12 training and 4 dev pictures; vocabulary of" in said
    assert "0.0 % of the words of the training captions are unknown" in said


def test_a_caption_without_a_letter_is_refused_before_the_first_step(data, tmp_path):
    shutil.copytree(data, tmp_path / "data")
    with (tmp_path / "data" / "flickr8k" / "captions.csv").open("a") as stream:
        stream.write("train_3.jpg,...!\n")
    done = train(write_config(tmp_path / "config.yaml"), tmp_path / "run", tmp_path / "data")
    assert done.returncode == 1
    assert "1 captions have no letter or digit, for example '...!' of image train_3.jpg" in done.stderr


def test_tensorboard_has_every_step_and_the_dev_scores_of_every_epoch(finished):
    losses, scores = scalars(finished, "train/loss"), scalars(finished, "dev/cider")
    assert list(losses) == list(range(1, 16))
    log = log_of(finished)
    assert list(scores) == [3, 6, 9, 12, 15]
    assert list(scores.values()) == pytest.approx([entry["cider"] for entry in log], abs=1e-4)
    assert sum(losses[step] for step in (1, 2, 3)) / 3 == pytest.approx(log[0]["loss"], abs=1e-4)
    assert list(scalars(finished, "train/reward")) == list(range(10, 16))
    assert list(scalars(finished, "learning_rate/backbone")) == [7, 8, 9]
    assert all(speed > 0 for speed in scalars(finished, "train/images_per_second").values())


def test_a_killed_run_resumes_to_the_same_bits(finished, data, tmp_path):
    config, run = write_config(tmp_path / "config.yaml"), tmp_path / "run"
    command = [sys.executable, "-m", "training.train", str(config), "--run", str(run), "--threads", "1"]
    environment = {**os.environ, "SMART_CAPTION_DATA": str(data)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if (run / "checkpoint.safetensors").exists():
            _, state = load_checkpoint(run / "checkpoint.safetensors")
            # Three steps an epoch; two epochs, one and two.
            if 3 * state["epoch"] + state["step"] + (0, 6, 9, 15)[state["phase"]] >= 7:
                break
        time.sleep(0.02)
    assert process.poll() is None, "ended before it was killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = train(config, run, data)
    assert done.returncode == 0, done.stderr
    expected, expected_state = load_checkpoint(finished / "checkpoint.safetensors")
    tensors, state = load_checkpoint(run / "checkpoint.safetensors")
    assert without_seconds(state) == without_seconds(expected_state)
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)
    assert log_of(run) == log_of(finished)
    for tag in ("train/loss", "train/reward", "gradient_norm/backbone", "learning_rate/captioner", "dev/cider"):
        assert scalars(run, tag) == scalars(finished, tag)


def test_missing_data_is_refused_with_the_variable_to_set(tmp_path):
    done = train(write_config(tmp_path / "config.yaml"), tmp_path / "run", tmp_path)
    assert done.returncode == 1
    assert "SMART_CAPTION_DATA" in done.stderr
    assert "Traceback" not in done.stderr
