"""Scores after an epoch: of the whole dev split, of a subset, and the best epoch by comparable scores."""

import json

from tests.training.small_runs import new_trainer
from training.data.visual_inputs import BackboneInputs
from training.engine.dev_evaluation import DevScores
from training.engine.trained_captioner import TrainedCaptioner

PHASE = {"name": "only", "epochs": 3, "learning_rate": 3e-3, "schedule": "constant", "images_per_batch": 5}
MODEL = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.0}


def trainer_of(folder, data, *phases, **evaluation):
    return new_trainer(folder, data, *phases, model=MODEL, evaluation={"beam_size": 2, **evaluation})


def log_of(folder):
    return [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()]


def run_with_scores(trainer, monkeypatch, *epochs):
    """Run with a given CIDEr of the subset and of the whole split after every epoch.

    Returns:
        For each epoch whether the whole split was scored.
    """

    def evaluate(epochs_left):
        subset, whole = ({"cider": cider, "bleu_4": 0.0} for cider in epochs[len(trainer.progress.history)])
        return DevScores(None if epochs_left else whole, subset, 2)

    monkeypatch.setattr(trainer.task, "evaluate", evaluate)
    trainer.run()
    return ["dev_subset" not in entry for entry in trainer.progress.history]


def best_of(folder):
    """Phase, epoch and CIDEr of the best model."""
    dev = TrainedCaptioner.load(folder / "run" / "best.safetensors").record["dev"]
    assert "dev_subset" not in dev
    return dev["phase"], dev["epoch"], dev["cider"]


def test_the_last_epochs_are_scored_on_the_whole_split_and_the_others_on_one_subset(data, tmp_path, monkeypatch):
    captioned, dev_batch = [], BackboneInputs.dev_batch

    def recorded(inputs, images):
        captioned.append(images.tolist())
        return dev_batch(inputs, images)

    monkeypatch.setattr(BackboneInputs, "dev_batch", recorded)
    trainer = trainer_of(tmp_path, data, {**PHASE, "epochs": 4}, subset=2, whole_split_in_last_epochs=2)
    trainer.run()
    assert [entry.get("dev_subset") for entry in log_of(tmp_path)] == [2, 2, None, None]
    first, second, *whole = captioned
    assert first == second
    assert len(set(first)) == 2
    assert whole == [[0, 1, 2, 3]] * 2
    assert best_of(tmp_path)[1] in (3, 4)


def test_a_phase_with_patience_scores_its_best_epochs_and_its_end_on_the_whole_split(data, tmp_path, monkeypatch):
    patient = {**PHASE, "epochs": 9, "patience": 2}
    trainer = trainer_of(tmp_path, data, patient, subset=2)
    # The third epoch is the best by the subset, and the sixth has gone two epochs without a better one.
    scores = [(0.3, 0.2), (0.2, 0.9), (0.4, 0.5), (0.3, 0.9), (0.4, 0.4)]
    assert run_with_scores(trainer, monkeypatch, *scores) == [True, False, True, False, True]
    assert best_of(tmp_path) == ("only", 3, 0.5)
