"""Captions without pictures teach words, and nothing of pictures."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.training.small_flickr8k import write_config
from training.configs.schema import PhaseConfig
from training.engine.experiment import load_run
from training.engine.trainer import Trainer
from training.errors import ConfigError, DataError
from training.models.captioner import Visual
from training.models.smart import Smart, SmartConfig
from training.objectives.language import Language
from training.objectives.objective import TrainingCaptions

VOCABULARY = Vocabulary((*SPECIAL, "a", "cup", "dog"))
PHASE = PhaseConfig(name="language", epochs=1, learning_rate=1e-3, objective="language")
PICTURED = [[["a", "dog"]], [["a", "dog"]], [["a", "dog"]]]


def captions(*text: list[list[str]]) -> TrainingCaptions:
    return TrainingCaptions(PICTURED, VOCABULARY, 10, text)


def captioner() -> Smart:
    torch.manual_seed(0)
    config = SmartConfig(
        vocabulary_size=len(VOCABULARY), token_width=6, d_model=16, heads=2, d_ff=32, encoder_layers=1,
        decoder_layers=1, memory_slots=2, dropout=0.0,
    )  # fmt: skip
    return Smart(config)


def test_the_loss_does_not_depend_on_the_pictures() -> None:
    objective, model = Language(captions([["a", "cup"]]), PHASE), captioner()
    one = objective(model, Visual(torch.randn(3, 5, 6)), np.arange(3)).loss
    other = objective(model, Visual(torch.randn(3, 5, 6)), np.arange(3)).loss
    assert one.item() == other.item()


def test_what_is_learnt_is_the_text_not_the_captions_of_the_pictures() -> None:
    objective, model = Language(captions([["a", "cup"]]), PHASE), captioner()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        objective(model, Visual(torch.randn(3, 5, 6)), np.arange(3)).loss.backward()
        optimizer.step()
    begin = torch.tensor([[[VOCABULARY.begin_id, VOCABULARY.encode(["a"])[0]]]])
    with torch.no_grad():
        following = model(Visual(torch.zeros(1, 1, 6)), begin)[0, 0, -1].argmax()
    assert VOCABULARY.words[int(following)] == "cup"


def test_captions_with_unknown_words_are_left_out_and_groups_come_round_again() -> None:
    objective = Language(captions([["a", "giraffe"]], [["a", "cup"], ["the", "cup"]]), PHASE)
    # Two words and the end, three times: one group is left for three photographs.
    assert objective.weight(np.arange(3)) == 9


def test_text_without_a_known_caption_is_refused() -> None:
    with pytest.raises(DataError, match="no caption is made of words of the training split"):
        Language(captions([["giraffes"]]), PHASE)


def test_a_run_begins_with_language(data: Path, tmp_path: Path) -> None:
    text = tmp_path / "captions_text.json"
    text.write_text(json.dumps({"annotations": [{"image_id": 1, "caption": "a red ball"}]}))
    phases = [
        {"name": "language", "objective": "language", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 4},
        {"name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 4},
    ]
    file = write_config(tmp_path / "c.yaml", phases=phases, data={"minimum_count": 1, "max_words": 12})
    with pytest.raises(ConfigError, match="data: text"):
        load_run(file)
    settings = {"minimum_count": 1, "max_words": 12, "text": str(text)}
    run = Trainer(
        load_run(write_config(file, phases=phases, data=settings)), data, tmp_path / "run", tmp_path / "features"
    )
    run.run()
    assert [entry["phase"] for entry in run.progress.history] == ["language", "frozen"]
