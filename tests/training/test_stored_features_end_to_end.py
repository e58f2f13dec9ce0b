"""Training, scoring and export of captioners of stored features."""

import json
from collections import Counter

import numpy as np
import pytest
from spacy.lang.en.stop_words import STOP_WORDS

from smart_caption_ros.captioning import Bundle, Captioner
from smart_caption_ros.captioning.vocabulary import SPECIAL
from tests.training.commands import run_here
from tests.training.small_coco import features_config, make_coco, write_coco_config
from training import evaluate, features
from training.data.coco import Karpathy
from training.data.feature_extraction import VISION_GRAPH_TOKENS
from training.engine.experiment import load_run
from training.engine.trained_captioner import TrainedCaptioner
from training.engine.trainer import Trainer
from training.errors import ConfigError
from training.models.smart import Smart


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_coco(tmp_path_factory.mktemp("data"))


def train(folder, data, **changes):
    config = load_run(write_coco_config(folder / "config.yaml", **changes))
    trainer = Trainer(config, data, folder / "run", folder / "cache")
    trainer.run()
    return trainer


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"evaluation": {"beam_size": 200}}, "beam_size is 200, but the vocabulary of the training captions has only"),
        ({"data": {"minimum_count": 10_000}}, "no word of the training captions is in the vocabulary"),
        ({"data": {"max_words": 55}}, "data: max_words is 55, but the captioner decodes at most 54 words"),
        ({"data": {"max_caption_words": 55}}, "data: max_caption_words is 55, but the captioner decodes at most 54"),
    ],
)
def test_data_that_cannot_be_trained_on_is_refused_before_the_first_step(data, tmp_path, changes, sentence):
    options = {"dataset": "coco", "options": {"karpathy": "coco/dataset_coco.json"}, "max_words": 10}
    settings = {"features": features_config("npz"), **changes, "data": {**options, **changes.get("data", {})}}
    config = load_run(write_coco_config(tmp_path / "config.yaml", **settings))
    with pytest.raises(ConfigError, match=sentence):
        Trainer(config, data, tmp_path / "run", tmp_path / "cache")


def test_a_captioner_of_stored_features_is_trained_on_boxes_too_and_scored(data, tmp_path, monkeypatch):
    encoded, encode = [], Smart.encode

    def recorded(captioner, visual):
        encoded.append((captioner.training, visual))
        return encode(captioner, visual)

    monkeypatch.setattr(Smart, "encode", recorded)
    trainer = train(tmp_path, data, features=features_config("store"))
    assert [entry["phase"] for entry in trainer.progress.history] == ["xe", "scst"]
    assert {training for training, _ in encoded} == {True, False}
    for _, visual in encoded:
        assert visual.boxes_xyxy.shape == (*visual.tokens.shape[:2], 4)
    kept = TrainedCaptioner.load(trainer.result)
    assert kept.backbone is None
    assert kept.record["features"]["kind"] == "store"
    monkeypatch.setenv("PATH", str(tmp_path))  # without Java, which this is not about
    monkeypatch.delenv("JAVA_HOME", raising=False)
    out, splits = tmp_path / "out.json", data / "coco" / "dataset_coco.json"
    options = ("--checkpoint", trainer.result, "--karpathy", splits, "--split", "test", "--json", out)
    assert run_here(evaluate.main, *options, data=data).returncode == 0
    document = json.loads(out.read_text())
    assert (document["dataset"], document["document_frequencies"]) == ("karpathy_test", "karpathy train")
    model = document["models"]["small-coco"]
    assert model["per_image"].keys() == set(Karpathy.load(splits).split("test"))
    assert (model["engine"], model["repeat_penalty"]) == ("torch", 0)
    assert run_here(evaluate.main, *options, "--repeat-penalty", "50", data=data).returncode == 0
    model = json.loads(out.read_text())["models"]["small-coco"]
    assert model["repeat_penalty"] == 50
    for image in model["per_image"].values():
        content = [word for word in image["caption"].split() if word not in STOP_WORDS]
        assert len(content) == len(set(content))


@pytest.mark.parametrize(
    ("changes", "minimum"),
    [({"vocabulary": "spacy"}, 5), ({"vocabulary": "spaces"}, 6), ({"vocabulary": "spaces", "minimum_count": 11}, 11)],
)
def test_the_vocabulary_follows_its_rule_or_the_given_minimum_count(data, tmp_path, changes, minimum):
    splits = Karpathy.load(data / "coco" / "dataset_coco.json")
    said = [caption for image in splits.split("train") for caption in splits.captions[image]]
    counts = Counter(word for caption in said for word in caption.lower().replace(",", "").replace(".", "").split())
    options = {"dataset": "coco", "options": {"karpathy": "coco/dataset_coco.json"}, "max_words": 10, **changes}
    config = load_run(write_coco_config(tmp_path / "c.yaml", features=features_config("npz"), data=options))
    trainer = Trainer(config, data, tmp_path / "run", tmp_path / "cache")
    assert set(trainer.task.trained.vocabulary.words[len(SPECIAL) :]) == {w for w, n in counts.items() if n >= minimum}


@pytest.mark.parametrize(
    ("lengths", "longest"), [({}, 10), ({"max_caption_words": 4}, 4), ({"max_caption_words": 30}, 30)]
)
def test_the_maximum_length_in_training_is_independent_of_that_in_search(data, tmp_path, lengths, longest):
    options = {"dataset": "coco", "options": {"karpathy": "coco/dataset_coco.json"}, "minimum_count": 1}
    settings = {"features": features_config("npz"), "data": {**options, "max_words": 10, **lengths}}
    config = load_run(write_coco_config(tmp_path / "c.yaml", **settings))
    captions = Trainer(config, data, tmp_path / "run", tmp_path / "cache").task.captions
    assert (captions.max_words, captions.max_caption_words) == (10, longest)


@pytest.mark.long
def test_a_captioner_of_a_bundles_tokens_is_exported_with_the_bundles_vision_graph(data, tmp_path, tiny_bundle):
    import export.__main__ as export

    options = (data / "coco", "--bundle", tiny_bundle, "-o", tmp_path / "store", "--ids", "number")
    assert run_here(features.main, *options).returncode == 0
    phases = [{"name": "xe", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 5}]
    train(tmp_path, data, features={"store": str(tmp_path / "store")}, phases=phases)
    best, bundle = tmp_path / "run" / "best.safetensors", tmp_path / "bundle"
    refused = run_here(export.main, best, bundle, data=data)
    assert (refused.returncode, "give it with --vision-from" in refused.stderr) == (1, True)
    done = run_here(export.main, best, bundle, "--vision-from", tiny_bundle, "--check-images", 3, data=data)
    assert (done.returncode, "3 of 3 captions" in done.stdout) == (0, True)
    exported, lender = Bundle.load(bundle), Bundle.load(tiny_bundle)
    assert exported.manifest["preprocessing"] == lender.manifest["preprocessing"]
    assert "COCO" in exported.manifest["trained_on"][0]["name"]
    assert exported.manifest["trained_on"][1:] == lender.manifest["trained_on"]
    frame = np.full((50, 60, 3), 90, np.uint8)
    assert Captioner.from_bundle(bundle).caption(frame).image_size == (60, 50)


@pytest.mark.parametrize(
    ("facts", "options", "complaint"),
    [
        ({"kind": "hdf5"}, (), "features of a detector whose features are in hdf5 files, which no bundle carries"),
        ({"kind": "store", "source": {"made_by": "another"}}, (), "features of another, which no bundle carries"),
        ("of this bundle's sister", ("--vision-from", "BUNDLE"), "did not make the features of this captioner"),
        (None, ("--vision-from", "BUNDLE"), "has a backbone of its own; leave --vision-from out"),
    ],
)
def test_a_captioner_whose_features_no_bundle_computes_is_not_exported(
    tiny_checkpoint, tiny_bundle, tmp_path, facts, options, complaint
):
    import export.__main__ as export

    trained = TrainedCaptioner.load(tiny_checkpoint)
    if facts is not None:
        source = {"made_by": VISION_GRAPH_TOKENS, "bundle": "sister", "vision_sha256": "0" * 64}
        trained.backbone = None
        trained.record["features"] = facts if isinstance(facts, dict) else {"kind": "store", "source": source}
    path = tmp_path / "best.safetensors"
    trained.save(path)
    given = [str(tiny_bundle) if word == "BUNDLE" else word for word in options]
    done = run_here(export.main, path, tmp_path / "bundle", *given)
    assert (done.returncode, complaint in done.stderr) == (1, True)
    assert not (tmp_path / "bundle").exists()
