"""The words that detected objects raise and lower."""

from pathlib import Path

import pytest

from smart_caption_ros.captioning import BundleError, Captioner, DetectedObject, GuideMode
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.grounding import CoverageError, NounCoverage, ObjectsGuide, guide_words
from smart_caption_ros.grounding.nouns import NounFinder

WORDS = (
    "a", "giraffe", "giraffes", "animal", "dog", "dogs", "puppy", "zebra", "cat", "table", "desk", "grass", "light",
    "lights", "traffic", "sofa", "robot", "robots",
)  # fmt: skip
VOCABULARY = Vocabulary((*SPECIAL, *WORDS))
STRENGTH, SHARE = 4.0, 0.25


@pytest.fixture(scope="module")
def finder(coverage: NounCoverage) -> NounFinder:
    return coverage.finder


@pytest.fixture(scope="module")
def guide(finder: NounFinder) -> ObjectsGuide:
    return ObjectsGuide("bias", STRENGTH, SHARE, sure_score=0.5, finder=finder)


def found(name: str, score: float) -> DetectedObject:
    return DetectedObject(name, 0, score, (0.0, 0.0, 10.0, 10.0))


def biases(guide: ObjectsGuide, *objects: DetectedObject) -> dict[str, float]:
    """The words with a bias, and their biases."""
    made = guide.word_biases(objects, VOCABULARY)
    assert made.bias.shape == made.groups.shape == (1, len(VOCABULARY))
    assert ((made.groups[0] > 0) == (made.bias[0] != 0)).all()
    return {VOCABULARY.words[i]: round(float(made.bias[0, i]), 3) for i in made.bias[0].nonzero()[0]}


def test_nothing_is_raised_without_objects(guide: ObjectsGuide) -> None:
    assert biases(guide) == {}


def test_the_words_of_a_found_class_are_raised_in_both_numbers_and_those_of_a_contradicting_class_lowered(
    guide: ObjectsGuide,
) -> None:
    raised, lowered = STRENGTH * 0.75, -STRENGTH * 0.75 * SHARE
    said = biases(guide, found("giraffe", 0.75))
    assert {word: said[word] for word in ("giraffe", "giraffes")} == {"giraffe": raised, "giraffes": raised}
    assert {said[word] for word in ("dog", "dogs", "puppy", "zebra", "cat")} == {lowered}
    assert 0 < said["animal"] < raised / 5  # it names many classes
    assert "table" not in said


def test_a_class_that_was_found_with_any_score_is_not_lowered(guide: ObjectsGuide) -> None:
    said = biases(guide, found("giraffe", 0.75), found("dog", 0.3))
    assert not {"dog", "dogs", "puppy"} & said.keys()
    assert said["cat"] < 0


def test_an_object_that_is_not_sure_raises_and_lowers_nothing(guide: ObjectsGuide) -> None:
    assert biases(guide, found("giraffe", 0.49)) == {}


def test_synonyms_of_a_class_of_several_words_are_raised(guide: ObjectsGuide) -> None:
    said = biases(guide, found("traffic light", 1.0))
    assert said == {"light": STRENGTH, "lights": STRENGTH}
    assert biases(guide, found("diningtable", 1.0))["table"] == STRENGTH


def test_a_class_that_the_table_lacks_is_raised_by_its_own_name(guide: ObjectsGuide) -> None:
    assert biases(guide, found("Robot", 0.5)) == {"robot": STRENGTH / 2, "robots": STRENGTH / 2}


def test_the_words_of_a_class_are_one_group(guide: ObjectsGuide) -> None:
    made = guide.word_biases([found("giraffe", 0.9), found("couch", 0.8)], VOCABULARY)
    group = dict(zip(VOCABULARY.words, made.groups[0].tolist(), strict=True))
    assert group["giraffe"] == group["giraffes"] == group["animal"] != group["sofa"] > 0
    assert group["dog"] == group["puppy"] != group["zebra"]
    assert group["grass"] == 0


@pytest.mark.parametrize("wrong", [{"strength": -1.0}, {"contradiction_share": 1.5}, {"sure_score": 2.0}])
def test_a_number_out_of_range_is_refused(wrong: dict[str, float], finder: NounFinder) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must lie between 0 and"):
        ObjectsGuide("both", **wrong, finder=finder)  # type: ignore[arg-type]


def test_an_unknown_mode_is_refused(finder: NounFinder) -> None:
    with pytest.raises(ValueError, match="loud"):
        ObjectsGuide("loud", finder=finder)


def test_auto_prefers_the_words_of_the_bundles_own_objects(detecting_bundle: Path) -> None:
    captioner = Captioner.from_bundle(detecting_bundle, engine="onnxruntime-cpu")
    assert captioner.guide is None
    assert guide_words(captioner) is captioner
    assert captioner.guide is not None
    assert captioner.guide.mode is GuideMode.BIAS
    guide_words(captioner, "off")
    assert captioner.guide is None


def test_auto_leaves_a_captioner_as_it_is_that_has_no_detector_or_takes_no_guide(
    detecting_bundle: Path, tiny_bundle: Path
) -> None:
    without_detector = Captioner.from_bundle(detecting_bundle, engine="onnxruntime-cpu", detector="none")
    assert guide_words(without_detector).guide is None
    without_inputs = Captioner.from_bundle(tiny_bundle, engine="onnxruntime-cpu")
    assert guide_words(without_inputs).guide is None
    with pytest.raises(BundleError, match="cannot guide this bundle"):
        guide_words(without_inputs, "bias")
    with pytest.raises(ValueError, match="loud"):
        guide_words(without_inputs, "loud")


def test_auto_leaves_a_captioner_as_it_is_where_spacy_is_missing(
    detecting_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captioner = Captioner.from_bundle(detecting_bundle, engine="onnxruntime-cpu")

    def fail() -> NounFinder:
        raise CoverageError("spaCy is missing")

    monkeypatch.setattr(NounFinder, "load", staticmethod(fail))
    assert guide_words(captioner).guide is None
    with pytest.raises(CoverageError):
        guide_words(captioner, "bias")
