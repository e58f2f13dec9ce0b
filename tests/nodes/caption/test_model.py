"""What the caption node cannot load is refused with a sentence that names it."""

from pathlib import Path

import pytest

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.grounding import CoverageError
from smart_caption_ros.nodes.caption.model import load_coverage, load_model
from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS
from tests.nodes.fake_captioner import FakeCaptioner


def loaded(load_captioner=Captioner.from_bundle, load_coverage=load_coverage, **changes):
    values = {spec.name: spec.default for spec in CAPTION_NODE_PARAMETERS}
    values |= {"engine": "onnxruntime-cpu", "coverage": False}
    return load_model({**values, **changes}, load_captioner, load_coverage)


def loaded_fake(**changes):
    model = loaded(FakeCaptioner, **changes)
    captioner = model.captioner
    return model, captioner


def test_the_captioner_is_loaded_as_the_parameters_say():
    given = {"bundle": "~/some_bundle", "threads": 3, "detector": "~/d.onnx", "detector_min_score": 0.0}
    model, captioner = loaded_fake(**given)
    assert model.coverage is None
    assert captioner.engine == "fake engine (onnxruntime-cpu, 3 threads)"
    assert captioner.bundle.path == Path.home() / "some_bundle"
    assert captioner.detector_argument == Path.home() / "d.onnx"
    assert captioner.minimum_score == 0.0
    assert loaded_fake(detector_min_score=-1.0)[1].minimum_score is None


@pytest.mark.parametrize(
    ("objects_from", "detector", "uses_topic", "loads"),
    [
        ("auto", "", True, None),
        ("auto", "d.onnx", False, "d.onnx"),
        ("detector", "d.onnx", False, "d.onnx"),
        ("topic", "d.onnx", True, "none"),
        ("none", "d.onnx", False, "none"),
    ],
)
def test_objects_from_decides_which_detector_is_loaded_and_whether_the_topic_is_used(
    objects_from, detector, uses_topic, loads
):
    model, captioner = loaded_fake(objects_from=objects_from, detector=detector)
    assert model.uses_topic == uses_topic
    assert captioner.detector_argument == (Path(loads) if loads else None)


def test_without_spacy_the_captions_come_without_coverage():
    def refuse(class_names):
        raise CoverageError("there is no spaCy")

    model = loaded(FakeCaptioner, refuse, coverage=True)
    assert model.coverage is None
    assert model.coverage_problem == "captions come without nouns and coverage: there is no spaCy"


def test_a_bundle_that_lacks_the_demanded_detector_is_refused():
    with pytest.raises(ValueError, match=r"^objects_from is bundle, but the bundle fake_bundle has no detector$"):
        loaded_fake(objects_from="bundle")


def test_objects_guide_the_words_where_the_parameter_says_so(detecting_bundle):
    model = loaded(bundle=str(detecting_bundle), objects_guide="bias")
    assert model.guided_by_topic
    assert model.captioner.guide is not None
    model = loaded(bundle=str(detecting_bundle), objects_guide="off")
    assert not model.guided_by_topic
    assert model.captioner.guide is None


def test_the_objects_of_the_bundles_own_detector_guide_by_default_and_those_of_a_topic_do_not(detecting_bundle):
    model = loaded(bundle=str(detecting_bundle))
    assert model.captioner.guide is not None
    assert not model.guided_by_topic
    assert loaded(bundle=str(detecting_bundle), objects_from="topic").captioner.guide is None
