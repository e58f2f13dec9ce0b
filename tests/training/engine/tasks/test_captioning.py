"""Modules of a captioner that do not learn, and the frozen reference of a phase."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.training.engine.observed_run import StoppedError, run
from tests.training.small_flickr8k import write_config
from training.checkpoint import load_checkpoint, under_prefix
from training.engine.experiment import load_run
from training.engine.trained_captioner import TrainedCaptioner
from training.engine.trainer import Trainer
from training.errors import ConfigError
from training.models.captioner import Encoded, Visual
from training.models.smart import Smart

XE = {"name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 5, "schedule": "constant"}
FINE_TUNED = {**XE, "name": "fine_tuned", "objective": "weighted_fine_tuning", "learning_rate": 3e-3}
MODELS = {
    "smart": {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.1},
    "up_down": {"lstm_units": 24, "attention_units": 16, "embedding_width": 20, "dropout": 0.1},
}
OUTPUT_SIDE = {
    "smart": ["decoder", "word_projection"],
    "up_down": ["language_lstm", "hidden_projection", "attention_score", "word_projection"],
}
"""Modules behind encoder and embeddings."""


def trained(folder: Path, data: Path, *phases: dict[str, Any], **changes: object) -> Trainer:
    folder.mkdir(exist_ok=True)
    config = load_run(write_config(folder / "config.yaml", phases=list(phases), **changes))
    trainer = Trainer(config, data, folder / "run", data / "features")
    trainer.run()
    return trainer


def weights_in(file: Path, module: str) -> dict[str, Tensor]:
    return under_prefix(module, load_checkpoint(file)[0])


@pytest.mark.parametrize("average", [0.0, 0.5])
@pytest.mark.parametrize("family", list(OUTPUT_SIDE))
def test_only_the_named_modules_learn(data: Path, tmp_path: Path, family: str, average: float) -> None:
    options = {"family": family, "model": MODELS[family]}
    trained(tmp_path / "first", data, XE, **options)
    first = tmp_path / "first" / "run" / "best.safetensors"
    fine_tuned = {**FINE_TUNED, "trained_modules": OUTPUT_SIDE[family], "average": average}
    trainer = trained(tmp_path / "second", data, fine_tuned, start_from=str(first), **options)
    before, after = (TrainedCaptioner.load(first), trainer.task.trained)
    for name, parameter in before.captioner.named_parameters():
        learns = name.partition(".")[0] in OUTPUT_SIDE[family]
        assert torch.equal(after.captioner.state_dict()[name], parameter) != learns, name
    pairs = zip(before.backbone.parameters(), after.backbone.parameters(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)


def test_without_options_of_the_model_they_are_those_of_the_model_that_it_starts_from(
    data: Path, tmp_path: Path
) -> None:
    trained(tmp_path / "first", data, XE, model=MODELS["smart"])
    first = tmp_path / "first" / "run" / "best.safetensors"
    second = trained(tmp_path / "second", data, XE, start_from=str(first), model={}).task.trained
    assert second.captioner.config == TrainedCaptioner.load(first).captioner.config


def test_the_next_phase_trains_all_modules_again(data: Path, tmp_path: Path) -> None:
    part = {**XE, "trained_modules": ["decoder.0", "word_projection"]}
    one = trained(tmp_path / "one", data, part).task.trained.captioner.state_dict()
    two = trained(tmp_path / "two", data, part, {**XE, "name": "whole"}).task.trained.captioner
    assert not any(torch.equal(one[name], parameter) for name, parameter in two.named_parameters())


def test_an_unknown_module_is_refused_with_those_that_there_are(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"phase frozen: trained_modules: .* no module 'decode'; it has .*decoder"):
        trained(tmp_path, data, {**XE, "trained_modules": ["decode"]})


def test_a_step_sees_a_part_of_the_visual_tokens_and_the_dev_split_all_of_them(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: dict[bool, set[int]] = {True: set(), False: set()}
    encode = Smart.encode

    def counting(self: Smart, visual: Visual) -> Encoded:
        counts[self.training].add(visual.tokens.shape[1])
        return encode(self, visual)

    monkeypatch.setattr(Smart, "encode", counting)
    trained(tmp_path, data, {**XE, "patch_dropout": 0.5})
    assert counts == {True: {25}, False: {49}}


def test_power_0_trains_as_cross_entropy_does(data: Path, tmp_path: Path) -> None:
    simple = trained(tmp_path / "simple", data, {**FINE_TUNED, "reference_power": 0.0}).task.tensors()
    plain = trained(tmp_path / "plain", data, {**FINE_TUNED, "objective": "cross_entropy"}).task.tensors()
    weighted = trained(tmp_path / "weighted", data, {**FINE_TUNED, "reference_power": 0.5}).task.tensors()
    assert all(torch.equal(simple[name], tensor) for name, tensor in plain.items())
    assert not torch.equal(simple["captioner.word_projection.weight"], weighted["captioner.word_projection.weight"])


@pytest.mark.parametrize("steps", [2, 5, 8])
def test_a_phase_with_a_reference_resumes_to_the_same_bits(data: Path, tmp_path: Path, steps: int) -> None:
    # Three steps an epoch: the run ends in its first phase, in the first epoch of the second, or in its last epoch.
    phases = [XE, {**FINE_TUNED, "epochs": 2, "average": 0.5, "reference_power": 1.0}]
    config = write_config(tmp_path / "config.yaml", phases=phases, model=MODELS["smart"])
    run(config, data, tmp_path / "whole")
    with pytest.raises(StoppedError):
        run(config, data, tmp_path / "cut", steps)
    if steps > 3:
        # The reference is the captioner at the beginning of the phase, not that of the checkpoint.
        checkpoint = tmp_path / "cut" / "run" / "checkpoint.safetensors"
        reference, captioner = (weights_in(checkpoint, module) for module in ("reference", "captioner"))
        assert reference.keys() == captioner.keys()
        assert not torch.equal(reference["word_projection.weight"], captioner["word_projection.weight"])
    run(config, data, tmp_path / "cut")
    for file in ("checkpoint.safetensors", "best.safetensors"):
        expected, found = (load_checkpoint(tmp_path / each / "run" / file)[0] for each in ("whole", "cut"))
        assert found.keys() == expected.keys()
        assert not under_prefix("reference", found)
        assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
