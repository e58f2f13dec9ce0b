"""All metrics together, on captions whose scores by the COCO toolkit are known."""

import pytest

from tests.training.evaluation.metrics.needs_java import needs_java
from training.data.coco import read_captions, read_results
from training.evaluation.metrics.java import PTB
from training.evaluation.metrics.scoring import score_models


def values(evaluation, model):
    return {name: metric.value for name, metric in evaluation.models[model].metrics.items()}


@needs_java
@pytest.mark.long
def test_published_captions_have_the_toolkits_known_scores(data_dir):
    results = read_results(data_dir / "results" / "PrefixCap_vis.json")
    references = read_captions(data_dir / "coco_val2017_captions" / "captions_val2017.json").captions
    images = [image for image in results if image in references]
    captions = {image: results[image] for image in images}
    evaluation = score_models({"PrefixCap": captions}, {image: references[image] for image in images})
    assert evaluation.tokeniser == PTB
    assert len(evaluation.images) == 608
    found = {name: round(value, 4) for name, value in values(evaluation, "PrefixCap").items()}
    expected = {"bleu_1": 0.7203, "bleu_4": 0.3209, "meteor": 0.2475, "rouge_l": 0.5499, "cider": 1.0267}
    assert {name: found[name] for name in expected} == expected


@pytest.fixture
def without_java(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.usefixtures("without_java")
def test_cider_d_takes_the_document_frequencies_that_it_is_given():
    models = {"m": {"1": "a red dog", "2": "a cat"}}
    references = {"1": ["a dog runs"], "2": ["a red cat"]}
    own = values(score_models(models, references), "m")
    other = values(score_models(models, references, [["A dog."], ["a red boat"], ["a red car"], ["a tree"]]), "m")
    assert own["cider_d"] == pytest.approx(own["cider"])
    assert other["cider"] == own["cider"]
    assert other["cider_d"] != pytest.approx(own["cider_d"])


HUMAN = {
    "1": ["a red dog runs", "the dog is red"],
    "2": ["a cat sits", "a black cat"],
    "3": ["a man cooks", "a man in a kitchen"],
    "4": ["a boat", "the boat on a lake"],
}
SAID = {"1": "a dog", "2": "a cat sits here", "3": "a man", "4": "a dog in a boat"}
SIMILAR = {"1": ["2"], "2": ["1"], "3": [], "4": []}
DOMAINS = {"1": "outdoors", "2": "outdoors", "3": "indoors"}


@pytest.mark.usefixtures("without_java")
def test_a_domain_is_scored_as_if_there_were_no_other_images():
    corpus = list(HUMAN.values())
    whole = score_models({"m": SAID}, HUMAN, corpus, similar=SIMILAR, domains=DOMAINS)
    assert list(whole.domains) == ["indoors", "outdoors"]
    outdoors = whole.domains["outdoors"]
    assert outdoors.images == ["1", "2"]
    said, human = ({image: texts[image] for image in ("1", "2")} for texts in (SAID, HUMAN))
    alone = score_models({"m": said}, human, corpus, similar=SIMILAR)
    assert values(outdoors, "m") == pytest.approx(values(alone, "m"))
    assert outdoors.models["m"].diversity == alone.models["m"].diversity
    assert {"cider", "cider_btw", "cider_d", "recall_5"} <= values(alone, "m").keys()


@pytest.mark.usefixtures("without_java")
def test_a_model_is_compared_with_its_own_references():
    person = {image: texts[0] for image, texts in HUMAN.items()}
    others = {image: texts[1:] for image, texts in HUMAN.items()}
    beside = score_models({"m": SAID, "person": person}, HUMAN, own_references={"person": others}, similar=SIMILAR)
    assert values(beside, "person") == values(score_models({"person": person}, others, similar=SIMILAR), "person")
    assert values(beside, "m") == values(score_models({"m": SAID}, HUMAN, similar=SIMILAR), "m")
