"""``python -m training.evaluate`` as a user runs it."""

import json
import shutil

import cv2
import numpy as np
import pytest

from smart_caption_ros.captioning import Bundle, Captioner
from tests.detection.tiny_detectors import COLOURS_BGR
from tests.tiny_model import tiny_trained
from tests.training.commands import run_here
from tests.training.small_coco_photographs import DEV, make_coco_photographs
from tests.training.small_flickr8k import make_data
from training.data.flickr8k import Flickr8k
from training.engine.trained_captioner import TrainedCaptioner
from training.evaluate import main

SYNONYMS = "dog, puppy\ncat\nperson, man\n"
CAPTIONS = {
    1: ["a dog runs on the grass", "a brown dog is running"],
    2: ["a cat sits", "the cat sits down"],
    3: ["a man"],
}
RESULTS = {
    "poor": {1: "A dog.", 2: "A dog and a man.", 3: "a man stands"},
    "good": {1: "a dog runs on grass", 2: "a cat sits down", 3: "A man."},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = make_data(tmp_path_factory.mktemp("data"))
    make_coco_photographs(root)
    (root / "lexicon").mkdir()
    (root / "lexicon" / "chair_synonyms.txt").write_text(SYNONYMS)
    return root


GOOD = ("--captions", "good.json", "--references", "captions.json")
PHOTOGRAPHS = ("--references", "captions.json", "--images", ".")


@pytest.fixture
def coco(tmp_path, monkeypatch):
    """The working folder, with COCO files: annotations, instances, results of two models, photographs."""
    annotations = [{"image_id": image, "caption": text} for image, texts in CAPTIONS.items() for text in texts]
    images = [{"id": image, "file_name": f"{image}.png"} for image in CAPTIONS]
    instances = {
        "images": images,
        "categories": [{"id": 1, "name": "person"}, {"id": 17, "name": "cat"}, {"id": 18, "name": "dog"}],
        "annotations": [{"image_id": image, "category_id": category} for image, category in ((1, 18), (2, 17), (3, 1))],
    }
    documents = {"captions": {"images": images, "annotations": annotations}, "instances": instances}
    for name, said in RESULTS.items():
        documents[name] = [{"image_id": image, "caption": caption} for image, caption in said.items()]
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    for image in CAPTIONS:
        cv2.imwrite(str(tmp_path / f"{image}.png"), np.full((60 + image, 80, 3), 40 * image, np.uint8))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def evaluate(data, tmp_path, monkeypatch):
    """The command, without Java."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return lambda *options: run_here(main, *options, data=data)


@pytest.fixture
def scored(evaluate, tmp_path):
    """The command; returns the document that it writes, and what it prints."""

    def run(*options):
        done = evaluate(*options, "--json", tmp_path / "out.json")
        assert done.returncode == 0, done.stderr
        return json.loads((tmp_path / "out.json").read_text()), done

    return run


def test_a_bundle_is_scored_on_a_split_and_its_captions_are_reported(scored, data, tiny_bundle):
    document, done = scored("--bundle", tiny_bundle, "--dataset", "flickr8k", "--split", "dev")
    (name, model), *_ = document["models"].items()
    captioner, dataset = Captioner.from_bundle(tiny_bundle), Flickr8k().open(data)
    assert name == captioner.model
    assert model["beam_size"] == captioner.bundle.search.beam_size
    for image in dataset.split("dev"):
        assert model["per_image"][image]["caption"] == captioner.caption(dataset.read_images([image])[0]).text
    assert document["document_frequencies"] == "flickr8k train"
    assert {"bleu_4", "rouge_l", "cider", "cider_d"} <= model["scores"].keys()
    assert "spaCy" in document["tokeniser"]
    assert "install a Java runtime" in document["not_available"]["meteor"]
    for metric in ("clip_s", "pac_s", "bert_s"):
        assert f"needs weights at {data / 'metrics' / metric}" in document["not_available"][metric]
    assert "not available" in done.stdout
    assert name in done.stdout


def test_captions_that_objects_guide_are_scored_and_not_recorded(evaluate, scored, detecting_bundle):
    arguments = ("--bundle", detecting_bundle, "--split", "dev", "--objects-guide", "bias")
    (model, *_) = scored(*arguments)[0]["models"].values()
    assert model["objects_guide"] == "bias"
    assert "leave out --objects-guide" in evaluate(*arguments, "--record").stderr


def test_recorded_scores_are_in_the_manifest_and_the_bundle_still_loads(scored, bundle_copy):
    document, _ = scored("--bundle", bundle_copy, "--split", "test", "--record")
    recorded = Bundle.load(bundle_copy).manifest["scores"]["flickr8k_test"]
    (model,) = document["models"].values()
    assert recorded["cider"] == round(model["scores"]["cider"], 4)
    assert recorded["images"] == 2
    assert {"tokeniser", "beam_size", "engine", "date"} <= recorded.keys()


@pytest.mark.usefixtures("coco")
def test_result_files_are_compared_with_paired_differences(scored):
    options = ["--captions", "poor.json", "good.json", "--references", "captions.json", "--seed", "3"]
    document, done = scored(*options, "--instances", "instances.json")
    poor, good = document["models"]["poor"], document["models"]["good"]
    assert document["images"] == 3
    assert document["bootstrap"] == {"resamples": 1000, "confidence": 0.95, "seed": 3}
    assert good["scores"]["cider"] > poor["scores"]["cider"]
    difference = good["differences"]["cider"]
    assert difference["difference"] == pytest.approx(good["scores"]["cider"] - poor["scores"]["cider"])
    assert difference["interval"][0] <= difference["difference"] <= difference["interval"][1]
    assert poor["scores"]["chair_i"] == pytest.approx(2 / 4)
    assert poor["scores"]["chair_s"] == pytest.approx(1 / 3)
    assert poor["per_image"]["2"]["chair_i"] == 1
    assert good["scores"]["chair_i"] == 0
    assert poor["scores"]["objects_supported"] == pytest.approx(2 / 4)
    assert poor["diversity"]["vocabulary_size"] == 5
    assert 0 <= good["diversity"]["self_bleu"] <= 1
    assert "give their folder with --images" in document["not_available"]["cider_btw"]
    assert "CHAIR-i (low is good)" in done.stdout
    assert "paired by image" in done.stdout
    again, _ = scored(*options)
    assert again["models"]["good"]["intervals"]["cider"] == good["intervals"]["cider"]
    assert "give COCO instances" in again["not_available"]["chair_i"]


def test_captions_and_images_that_are_not_scored_are_counted_in_warnings(scored, coco):
    (coco / "some.json").write_text(json.dumps([{"image_id": i, "caption": "a dog"} for i in (1, 2, 99)]))
    document, done = scored("--captions", "some.json", "--references", "captions.json")
    assert document["images"] == 2
    assert "1 of 3 captions of some have no references" in done.stderr
    assert "1 of 3 images with references have no caption of some" in done.stderr


def test_a_bundle_and_a_person_are_judged_on_coco_photographs(scored, tiny_bundle):
    options = ("--dataset", "coco_photographs", "--human", "--seed", "3")
    document, done = scored("--bundle", tiny_bundle, *options)
    assert document["dataset"] == "coco_photographs_dev"
    model, person = document["models"].values()
    assert list(document["models"])[1] == "a person"
    for scores in (model, person):
        assert {"cider", "bleu_4", "recall_1", "recall_5", "cider_btw", "objects_supported"} <= scores["scores"].keys()
        assert list(scores["domains"]) == ["indoors", "outdoors"]
        assert scores["domains"]["indoors"]["images"] == 2
        assert scores["domains"]["indoors"]["intervals"]["recall_5"] == [1, 1], "two photographs are among five"
    assert person["scores"]["recall_1"] > model["scores"]["recall_1"]
    for image, entry in person["per_image"].items():
        assert entry["caption"] in DEV[image][1]
    assert "drawn by seed 3" in person["source"]
    assert "indoors: 2 images" in done.stdout
    assert "CIDErBtw (low is good)" in done.stdout
    assert scored(*options)[0]["models"]["a person"]["scores"]["cider"] == person["scores"]["cider"]


def test_images_without_human_captions_are_captioned_in_order(scored, coco, tiny_bundle):
    (coco / "frames").mkdir()
    for name, shade in (("f10.png", 0), ("f2.png", 0), ("f1.png", 250)):
        cv2.imwrite(str(coco / "frames" / name), np.full((60, 80, 3), shade, np.uint8))
    shutil.make_archive(str(coco / "frames"), "zip", coco / "frames")
    document, done = scored("--bundle", tiny_bundle, "--images", "frames")
    (model,) = document["models"].values()
    said = [entry["caption"] for entry in model["per_image"].values()]
    assert list(model["per_image"]) == ["f1.png", "f2.png", "f10.png"]
    assert said[1] == said[2]
    assert (model["diversity"]["different"], model["diversity"]["longest_run"]) == (len(set(said)), said.count(said[1]))
    assert model["scores"] == {}
    assert f"{len(set(said))} of 3" in done.stdout
    assert "CIDEr" not in done.stdout
    zipped, _ = scored("--bundle", tiny_bundle, "--images", "frames.zip")
    assert next(iter(zipped["models"].values()))["per_image"] == model["per_image"]


def test_only_the_images_of_a_list_are_scored(scored, coco):
    (coco / "some.txt").write_text("\ufeff3 \n1\r\n", encoding="utf-8")
    results = json.loads((coco / "good.json").read_text())
    (coco / "good.json").write_text(json.dumps([{**entry, "image_id": float(entry["image_id"])} for entry in results]))
    document, _ = scored(*GOOD, "--only", "some.txt")
    assert list(document["models"]["good"]["per_image"]) == ["1", "3"]
    assert document["dataset"] == "captions, some.txt"


def test_domains_of_the_annotations_or_of_a_file_are_scored_apart(scored, coco):
    annotations = json.loads((coco / "captions.json").read_text())
    for image, domain in zip(annotations["images"], ("in-domain", "out-domain", "out-domain"), strict=True):
        image["domain"] = domain
    (coco / "nocaps.json").write_text(json.dumps(annotations))
    (coco / "domains.json").write_text(json.dumps({"animals": [1, 2], "nothing": [77]}))
    for options, expected in (
        (("--references", "nocaps.json"), {"in-domain": 1, "out-domain": 2}),
        (("--references", "captions.json", "--domains", "domains.json"), {"animals": 2}),
    ):
        domains = scored("--captions", "good.json", *options)[0]["models"]["good"]["domains"]
        assert {name: scores["images"] for name, scores in domains.items()} == expected
    assert domains["animals"]["diversity"]["different"] == 2


def test_captions_of_a_test_set_without_public_captions_are_written_for_an_evaluation_server(
    evaluate, coco, tiny_bundle
):
    images = json.loads((coco / "captions.json").read_text())["images"]
    (coco / "image_info.json").write_text(json.dumps({"images": images}))
    (coco / "results").mkdir()
    options = ("--image-info", "image_info.json", "--images", ".", "--write-captions", "results")
    done = evaluate("--bundle", tiny_bundle, *options)
    assert done.returncode == 0, done.stderr
    (result,) = (coco / "results").iterdir()
    entries = json.loads(result.read_text())
    assert [entry["image_id"] for entry in entries] == [image["id"] for image in images]
    assert all(set(entry) == {"image_id", "caption"} for entry in entries)


def test_a_result_file_that_was_read_is_not_written_and_none_is_lost_by_its_name(scored, coco):
    before = (coco / "good.json").read_bytes()
    for copy in ("good 2.json", "other/good.json"):
        (coco / copy).parent.mkdir(exist_ok=True)
        (coco / copy).write_bytes(before)
    copies = ("other/good.json", "good 2.json")
    document, _ = scored("--captions", "good.json", *copies, *GOOD[2:], "--write-captions", ".")
    assert [*document["models"]] == ["good 1", "good 2", "good 2 3"]
    assert (coco / "good.json").read_bytes() == before


def test_captions_without_any_word_are_scored(scored, coco):
    said = [{"image_id": image, "caption": text} for image, text in ((1, "..."), (2, "!"))]
    (coco / "good.json").write_text(json.dumps(said))
    (coco / "captions.json").write_text(json.dumps({"images": [{"id": 1}, {"id": 2}], "annotations": said}))
    assert scored(*GOOD)[0]["models"]["good"]["scores"]["cider"] == 0


WRONG_FILES = {
    "stray.json": [{"image_id": 99, "caption": "a dog"}],
    "two.json": {
        "images": [{"id": 1}, {"id": 2}],
        "categories": [{"id": 18, "name": "dog"}],
        "annotations": [{"image_id": 1, "category_id": 18}],
    },
    "twice.json": {"a": [1], "b": [2, 1]},
    "other.json": {"a": [99]},
    "four.json": {"1": ["dog", "cat", "ball", "the"]},
    "number.json": {"1": [["dog", 3]]},
    "zebra.json": {"1": ["zebra"]},
    "ninety.json": {"99": ["dog"]},
    "list.txt": "1\n99\n",
    "own.yaml": "name: x",
}
CONSTRAINED = ("--checkpoint", "best.safetensors", *PHOTOGRAPHS, "--constraints")


@pytest.mark.parametrize(
    ("options", "status", "complaint"),
    [
        (["--captions", "nowhere.json", "--references", "captions.json"], 1, "nowhere.json: no such file"),
        (["--captions", "stray.json", "--references", "captions.json"], 1, "no image has a caption of stray"),
        ([*GOOD, "--instances", "two.json"], 1, "1 of 3 images"),
        (["--bundle", "nowhere", *PHOTOGRAPHS], 1, "no such bundle"),
        (["--bundle", "nowhere", "--references", "captions.json"], 2, "needs --images"),
        ([*GOOD, "--split", "dev"], 2, "not both"),
        ([*GOOD, "--record"], 2, "--record goes with a bundle"),
        ([*GOOD, "--resamples", "-1"], 2, "--resamples"),
        ([*GOOD, "--json", "no/out.json"], 1, "cannot be written"),
        (["--dataset", "own.yaml", "--json", "own.yaml"], 2, "own.yaml is also an input"),
        ([*GOOD, "--json", "empty"], 2, "empty is a folder"),
        ([*GOOD, "--human"], 1, "image 3 of captions has 1 human"),
        ([*GOOD, "--only", "no.txt"], 1, "no.txt: the list of"),
        ([*GOOD, "--only", "list.txt"], 1, "for example 99"),
        ([*GOOD, "--domains", "twice.json"], 1, "in two domains"),
        ([*GOOD, "--domains", "other.json"], 1, "no image of"),
        ([*GOOD, "--write-captions", "nowhere"], 1, "nowhere: no such folder to write captions to"),
        (["--image-info", "captions.json", *PHOTOGRAPHS], 2, "--image-info goes with --images"),
        (["--image-info", "good.json", "--images", "."], 1, "a COCO annotation file is an object, not a list"),
        (["--dataset", "coco"], 2, "none of flickr8k, coco_photographs"),
        (["--dataset", "flickr8k", "--images", "."], 2, "stands alone"),
        (["--images", ".", "--human"], 2, "--images alone has none"),
        (["--images", "nowhere"], 1, "nowhere: no such folder or zip"),
        (["--images", "empty.zip"], 1, "empty.zip: no image in it"),
        ([*GOOD, "--engine", "cpu"], 2, "--engine: is for bundles"),
        (["--repeat-penalty", "1"], 2, "--repeat-penalty: is for checkpoints"),
        (["--objects-guide", "loud"], 2, "'loud' is none of auto, off, bias"),
        (["--constraints", "zebra.json"], 2, "is for checkpoints"),
        ([*CONSTRAINED, "ninety.json"], 1, "none of its images"),
        ([*CONSTRAINED, "four.json"], 1, "image 1: expected a list of up to 3"),
        ([*CONSTRAINED, "number.json"], 1, "a constraint is a word or a list of words"),
        ([*CONSTRAINED, "zebra.json"], 1, "vocabulary has none of zebra"),
    ],
)
def test_wrong_options_and_files_are_refused_in_a_sentence(evaluate, coco, checkpoint, options, status, complaint):
    (coco / "best.safetensors").symlink_to(checkpoint)
    for name, content in WRONG_FILES.items():
        (coco / name).write_text(content if isinstance(content, str) else json.dumps(content))
    (coco / "empty").mkdir()
    shutil.make_archive(str(coco / "empty"), "zip", coco / "empty")
    done = evaluate(*options)
    assert done.returncode == status
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


WORDS = ("a", "the", "dog", "dogs", "cat", "ball", "chair", "chairs", "runs", "sits", "on")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A captioner with random weights and a few English words."""
    trained = tiny_trained(vocabulary=WORDS)
    experiment = {
        "name": "tiny", "family": "smart", "backbone": "any.onnx", "data": {"max_words": 6},
        "evaluation": {"beam_size": 2}, "phases": [{"name": "any", "epochs": 1, "learning_rate": 0.0}],
    }  # fmt: skip
    trained.record = {"name": "tiny", "experiment": experiment}
    path = tmp_path_factory.mktemp("checkpoint") / "best.safetensors"
    trained.save(path)
    return path


def test_a_checkpoint_is_also_scored_with_the_constraints_of_a_file(scored, coco, checkpoint):
    (coco / "constraints.json").write_text(json.dumps({"1": ["dog", ["ball", "cat"]], "3": ["chair", "sits", "the"]}))
    document, _ = scored("--checkpoint", checkpoint, *PHOTOGRAPHS, "--constraints", "constraints.json")
    free, constrained = document["models"].items()
    assert (free[0], constrained[0]) == ("tiny", "tiny, constrained")
    said = {image: set(entry["caption"].split()) for image, entry in constrained[1]["per_image"].items()}
    assert said["1"] & {"dog", "dogs"}
    assert said["1"] & {"ball", "cat"}
    assert sum(bool(said["3"] & words) for words in ({"chair", "chairs"}, {"sits"}, {"the"})) >= 2
    assert constrained[1]["per_image"]["2"]["caption"] == free[1]["per_image"]["2"]["caption"]
    facts = constrained[1]["constraints"]
    assert (facts["given"], facts["minimum"]) == (5, 2)
    assert 4 <= facts["satisfied"] <= 5
    assert "constraints" not in free[1]


def test_captions_name_the_objects_that_a_detector_finds(scored, coco, checkpoint, bundle_with_detector):
    for image, name in ((1, "dog"), (2, "chair")):
        frame = np.zeros((64, 64, 3), np.uint8)
        frame[16:32, 16:32] = COLOURS_BGR[name]
        cv2.imwrite(str(coco / f"{image}.png"), frame)
    for detector in (bundle_with_detector, bundle_with_detector / "detector.onnx"):
        document, _ = scored("--checkpoint", checkpoint, *PHOTOGRAPHS, "--constraints", detector)
        (_, constrained) = document["models"].values()
        captions = {image: entry["caption"].split() for image, entry in constrained["per_image"].items()}
        assert {"dog", "dogs"} & set(captions["1"])
        assert {"chair", "chairs"} & set(captions["2"])
        assert constrained["constraints"]["given"] == constrained["constraints"]["satisfied"] == 2


def test_a_penalty_of_the_end_token_makes_captions_longer(scored, coco, checkpoint):
    trained = TrainedCaptioner.load(checkpoint)
    trained.change_search(end_penalty=-30.0, max_words=6)  # the end at once, unless the command says otherwise
    trained.save(coco / "longer.safetensors")
    words = {}
    for arguments in ([], ["--end-penalty", "30"]):
        (model,) = scored("--checkpoint", "longer.safetensors", *PHOTOGRAPHS, *arguments)[0]["models"].values()
        words[model["end_penalty"]] = model["diversity"]["mean_words"]
    assert words == {-30: 0, 30: 6}
