"""Hyper-parameters of a run that starts from another, and what a step sees of its images."""

import pytest

from tests.training.small_runs import new_trainer, trained
from training.data.captions import caption_ids
from training.engine.task import CaptionTask
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import ConfigError
from training.models.smart import Smart

XE = {"name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 5, "schedule": "constant"}
MODEL = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.1}


def test_without_options_of_the_model_they_are_those_of_the_model_that_it_starts_from(data, tmp_path):
    trained(tmp_path / "first", data, XE, model=MODEL)
    first = tmp_path / "first" / "run" / "best.safetensors"
    second = trained(tmp_path / "second", data, XE, start_from=str(first), model={}).task.trained
    assert second.captioner.config == TrainedCaptioner.load(first).captioner.config


@pytest.mark.parametrize("beams", [{"evaluation": {"beam_size": 1}}, {"phase": {"beam_size": 1}}])
def test_self_critical_training_with_one_beam_which_would_learn_nothing_is_refused(data, tmp_path, beams):
    phase = {**XE, "objective": "self_critical", **beams.pop("phase", {})}
    with pytest.raises(ConfigError, match="phase frozen: beam_size must be at least 2 for self_critical, not 1"):
        new_trainer(tmp_path, data, phase, **beams)


def test_a_step_sees_a_part_of_the_visual_tokens_and_the_dev_split_all_of_them(data, tmp_path, monkeypatch):
    counts = {True: set(), False: set()}
    encode = Smart.encode

    def counting(self, visual):
        counts[self.training].add(visual.tokens.shape[1])
        return encode(self, visual)

    monkeypatch.setattr(Smart, "encode", counting)
    trained(tmp_path, data, {**XE, "patch_dropout": 0.5})
    assert counts == {True: {5}, False: {9}}


def test_a_phase_of_pairs_trains_on_every_caption_once_with_its_image(data, tmp_path, monkeypatch):
    seen = []
    read = CaptionTask.read

    def reading(self, images):
        batch = read(self, images)
        assert batch.targets.tree.captions.shape[1] == 1
        names = [self.images["train"][place] for place in self._image_of[images]]
        sizes = {len(names), *(len(field) for field in (batch.visual.features, batch.targets.tree.words))}
        assert sizes == {len(names)}
        for name, caption in zip(names, batch.targets.tree.captions[:, 0].tolist(), strict=True):
            seen.append((name, str([word for word in caption if word])))
        return batch

    monkeypatch.setattr(CaptionTask, "read", reading)
    trainer = trained(tmp_path, data, {**XE, "pairs": True, "images_per_batch": 7})
    captions = trainer.task.captions
    assert trainer.plan.steps == [-(-sum(map(len, captions.words)) // 7)]
    expected = [
        (name, str(ids[:-1]))
        for name, own in zip(trainer.task.images["train"], captions.words, strict=True)
        for ids in caption_ids(own, captions.vocabulary, captions.max_caption_words)
    ]
    assert sorted(seen) == sorted(expected)
    assert [name for name, _ in seen] != [name for name, _ in expected]  # in random order
