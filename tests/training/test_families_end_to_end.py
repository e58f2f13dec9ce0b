"""M2 with word vectors and the Object Relation Transformer from stored features to the score of their ensemble."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch

from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import TINY_SIZES
from tests.training.commands import run_here
from tests.training.region_files import WIDTH
from tests.training.small_coco import features_config, make_coco, write_coco_config
from training import evaluate
from training.decoding.beam_search import SearchSettings, beam_search, search_captions
from training.engine.experiment import load_run
from training.engine.trained_captioner import TrainedCaptioner
from training.engine.trainer import Trainer
from training.errors import ConfigError
from training.models.published_decoders import Blip
from training.objectives import self_critical


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = make_coco(tmp_path_factory.mktemp("data"))
    (root / "glove.txt").write_text("red 1 0 1\nball 0 1 1\nbox 0 2 1\n")
    return root


def train(folder, root, family, model, **changes):
    """Train one epoch and return the result."""
    folder.mkdir()
    phases = [{"name": "xe", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 4}]
    path = write_coco_config(
        folder / "config.yaml",
        name=family, family=family, model=model, features=features_config("npz"), phases=phases, **changes,
    )  # fmt: skip
    config = load_run(path)
    Trainer(config, root, folder / "run", folder / "cache").run()
    return folder / "run" / "best.safetensors"


def test_members_of_different_families_are_scored_beside_their_ensemble(data, tmp_path, monkeypatch, capsys):
    model = {**TINY_SIZES["m2"], "word_vector_width": 3}
    m2 = train(tmp_path / "m2", data, "m2", model, word_vectors="glove.txt")
    assert "3 of " in capsys.readouterr().out
    kept = TrainedCaptioner.load(m2)
    learnt = kept.record["word_vectors"]["learnt"]
    assert "green" in learnt
    assert "ball" not in learnt
    assert kept.captioner.word_vectors[kept.vocabulary.encode(["box"])[0]].tolist() == [0, 2, 1]
    relation = train(tmp_path / "relation", data, "object_relation", TINY_SIZES["object_relation"])

    monkeypatch.setenv("PATH", str(tmp_path))  # without Java, which this is not about
    monkeypatch.delenv("JAVA_HOME", raising=False)
    out, splits = tmp_path / "out.json", data / "coco" / "dataset_coco.json"
    options = ["--checkpoint", m2, relation, "--ensemble", "--karpathy", splits, "--split", "test", "--json", out]
    assert run_here(evaluate.main, *options, data=data).returncode == 0
    models = json.loads(out.read_text())["models"]
    assert list(models) == ["m2", "object_relation", "ensemble of 2: m2, object_relation"]


def test_vectors_of_another_width_are_refused(data, tmp_path):
    with pytest.raises(ConfigError, match="vectors of width 3; set word_vector_width"):
        train(tmp_path / "m2", data, "m2", TINY_SIZES["m2"], word_vectors="glove.txt")


def test_a_captioner_of_pieces_is_trained_continued_and_said_in_whole_words(data, tmp_path):
    options = {"karpathy": "coco/dataset_coco.json"}
    pieces = {"dataset": "coco", "options": options, "tokenizer": "bpe", "vocabulary_size": 45, "max_words": 20}
    first = train(tmp_path / "first", data, "up_down", TINY_SIZES["up_down"], data=pieces)
    second = train(tmp_path / "second", data, "up_down", TINY_SIZES["up_down"], data=pieces, start_from=str(first))
    kept, continued = TrainedCaptioner.load(first), TrainedCaptioner.load(second)
    assert len(kept.vocabulary) == 45
    assert any(kept.vocabulary.continues(index) for index in range(45))
    assert (continued.vocabulary, continued.record["merges"]) == (kept.vocabulary, kept.record["merges"])


def test_a_published_captioner_keeps_its_pieces_and_its_search(data, tmp_path, monkeypatch):
    words = ("a", "red", "there", "is", "ball", "##s", "b", "##ox", "gr", "##een", "one", "it", "and")
    vocabulary = Vocabulary((*SPECIAL, *words), "##")
    sizes = {**TINY_SIZES["blip"], "prompt": [Vocabulary.begin_id, 4]}
    torch.manual_seed(0)
    published = Blip(Blip.Config(len(vocabulary), WIDTH, **sizes))
    search = Search(beam_size=4, max_words=9, length_penalty=0.6, finished="apart", min_words=3)
    record = {"name": "published", "experiment": {}}
    TrainedCaptioner("blip", published, None, vocabulary, record, search).save(tmp_path / "published.safetensors")
    xe = {"name": "xe", "epochs": 2, "learning_rate": 5e-3, "images_per_batch": 4}
    phases = [xe, {**xe, "name": "scst", "epochs": 1, "objective": "self_critical"}]
    path = write_coco_config(
        tmp_path / "config.yaml",
        family="blip", model={}, features=features_config("npz"), phases=phases,
        start_from=str(tmp_path / "published.safetensors"),
        data={"dataset": "coco", "options": {"karpathy": "coco/dataset_coco.json"}},
    )  # fmt: skip
    config = load_run(path)
    trainer = Trainer(config, data, tmp_path / "run", tmp_path / "cache")
    searches = []

    def recorded(*arguments):
        searches.append(arguments[3])
        return search_captions(*arguments)

    monkeypatch.setattr(self_critical, "search_captions", recorded)
    trainer.run()
    assert {(own.beam_size, own.max_words, own.length_penalty, own.finished) for own in searches} == {
        (4, 9, 0.6, "apart")
    }
    first, second, _ = (entry["loss"] for entry in trainer.progress.history)
    assert second < first
    tuned = TrainedCaptioner.load(tmp_path / "run" / "best.safetensors")
    assert (tuned.vocabulary, tuned.captioner.config) == (vocabulary, published.config)
    assert tuned.search == search
    inputs = trainer.task.inputs
    visual = inputs.visual(inputs.dev_batch(np.arange(3)))
    words = tuned.caption(visual).words
    settings = SearchSettings(**asdict(search), pieces=tuned.pieces)
    assert torch.equal(words, beam_search(tuned.captioner, visual, settings).words)
    assert (words[:, 0] != Vocabulary.padding_id).sum(dim=1).min() >= 3
