"""What the caption node cannot load is refused with a sentence that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from smart_caption_ros.captioning import BundleError, Captioner, GuideMode
from smart_caption_ros.grounding import CoverageError
from smart_caption_ros.nodes.caption.model import Model, load_coverage, load_model
from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS

pytestmark = pytest.mark.needs_ros


@pytest.mark.parametrize(
    "chosen", [("", "/no/such/glove.txt", ""), ("", "", "/no/such/synonyms.txt"), ("no_such_pipeline", "", "")]
)
def test_what_coverage_cannot_load_is_refused_with_a_sentence(chosen: tuple[str, str, str]) -> None:
    with pytest.raises(CoverageError) as caught:
        load_coverage(*chosen, class_names=())
    assert "no_such" in str(caught.value) or "/no/such" in str(caught.value)


def loaded(**changes: Any) -> Model:
    values = {spec.name: spec.default for spec in CAPTION_NODE_PARAMETERS}
    values |= {"engine": "onnxruntime-cpu", "coverage": False}
    return load_model({**values, **changes}, Captioner.from_bundle, load_coverage)


def test_objects_guide_the_words_where_the_parameter_says_so(detecting_bundle: Path) -> None:
    model = loaded(bundle=str(detecting_bundle), objects_guide="both")
    assert model.guided_by_topic
    assert model.captioner.guide is not None
    assert model.captioner.guide.mode is GuideMode.BOTH
    model = loaded(bundle=str(detecting_bundle), objects_guide="off")
    assert not model.guided_by_topic
    assert model.captioner.guide is None


def test_the_objects_of_the_bundles_own_detector_guide_by_default_and_those_of_a_topic_do_not(
    detecting_bundle: Path,
) -> None:
    model = loaded(bundle=str(detecting_bundle))
    assert model.captioner.guide is not None
    assert model.captioner.guide.mode is GuideMode.BIAS
    assert not model.guided_by_topic
    assert loaded(bundle=str(detecting_bundle), objects_from="topic").captioner.guide is None


def test_a_bundle_that_cannot_be_guided_is_refused(tiny_bundle: Path) -> None:
    with pytest.raises(BundleError, match="set objects_guide to off, or export the bundle again"):
        loaded(bundle=str(tiny_bundle), objects_guide="bias")
