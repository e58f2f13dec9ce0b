"""The benchmark of guidance: its settings and its figures."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.objects_guide import Frames, Said, Setting, caption_frames, household, score
from smart_caption_ros.captioning import Captioner, GuideMode
from smart_caption_ros.grounding import NounCoverage, ObjectsGuide
from smart_caption_ros.grounding.objects_guide import ABSENCE_SHARE, STRENGTH


def test_a_setting_is_a_mode_with_a_strength_and_a_share() -> None:
    assert Setting.parse("off") == (GuideMode.OFF, STRENGTH, ABSENCE_SHARE)
    assert Setting.parse("bias:2") == (GuideMode.BIAS, 2.0, ABSENCE_SHARE)
    assert Setting.parse("both:2:0.5") == (GuideMode.BOTH, 2.0, 0.5)
    with pytest.raises(ValueError, match="loud"):
        Setting.parse("loud:1")


def test_every_setting_captions_every_frame(detecting_bundle: Path, coverage: NounCoverage) -> None:
    images = {name: np.full((40, 40, 3), shade, np.uint8) for name, shade in (("a", 20), ("b", 200))}
    frames = Frames(
        iter(images.items()), {name: ["a dog"] for name in images}, None, {name: ["dog"] for name in images}
    )
    guides = {mode: ObjectsGuide(mode, finder=coverage.finder) for mode in ("off", "both")}
    said = caption_frames(Captioner.from_bundle(detecting_bundle, "onnxruntime-cpu", threads=1), frames, guides)
    assert {setting: list(of_images) for setting, of_images in said.items()} == {"off": ["a", "b"], "both": ["a", "b"]}
    assert all(each.text and each.steps for of_images in said.values() for each in of_images.values())


@pytest.mark.needs_data
def test_a_caption_that_names_what_is_there_scores_higher(coverage: NounCoverage) -> None:
    references = {"a": ["a giraffe eats a tree"], "b": ["a cat on a bed"]}
    frames = Frames(iter(()), references, None, {"a": ["giraffe"], "b": ["cat", "bed"]})
    said = {
        "off": {"a": Said("a dog in the water", 5, 4, 6), "b": Said("a cat on a bed", 5, 4, 6)},
        "bias": {"a": Said("a giraffe eats a tree", 5, 4, 7), "b": Said("a cat on a bed", 5, 4, 6)},
    }
    scores = score(frames, said, coverage)
    off, bias = scores["off"], scores["bias"]
    assert isinstance(off, dict)
    assert isinstance(bias, dict)
    assert (off["classes_named"], bias["classes_named"]) == (0.5, 1.0)
    assert bias["cider_d"] > off["cider_d"]
    assert bias["noun_support"] > off["noun_support"]
    assert (off["objects_supported"], bias["objects_supported"]) == (pytest.approx(0.667, abs=0.01), 1.0)
    assert (off["changed"], bias["changed"]) == (0, 0.5)
    assert bias["steps"] == 6.5


def test_the_household_frames_have_captions_and_objects() -> None:
    frames = household()
    assert len(frames.references) == len(frames.classes) == 40
    image, image_bgr = next(frames.images)
    assert image_bgr.shape == (360, 480, 3)
    assert frames.classes[image]
    assert len(frames.references[image]) == 5
