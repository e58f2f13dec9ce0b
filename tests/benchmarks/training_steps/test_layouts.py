"""Trainers of commits with other names are built where the names are known, and refused in a sentence elsewhere."""

import sys
from pathlib import Path

import pytest

from benchmarks.training_steps.layouts import UnknownLayoutError, build_trainer
from training.engine import distributed, trainer

OPTIONS = {
    "name": "e",
    "features": {"store": "s"},
    "phases": [{"name": "p", "epochs": 1, "learning_rate": 1e-3}],
}


def test_a_checkout_without_a_known_trainer_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "training.engine.trainer", None)  # its import fails
    with pytest.raises(UnknownLayoutError, match=r"none of the modules training\.engine\.trainer, training\.trainer"):
        build_trainer(OPTIONS, tmp_path, tmp_path, "cpu")


def test_a_trainer_with_another_interface_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert trainer.Processes is distributed.Processes  # imported before the name is removed
    monkeypatch.delattr(distributed, "Processes")
    with pytest.raises(UnknownLayoutError, match=r"training\.engine\.trainer has another interface"):
        build_trainer(OPTIONS, tmp_path, tmp_path, "cpu")
