"""What is computed, estimated and rewritten for labelled photographs."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from recipes.caption_sets.coco_statements import captions_from_statements
from recipes.caption_sets.fluency import Fluency
from recipes.caption_sets.labelled_photographs import (
    computed_of_photographs,
    counts_by_label,
    object_counts,
)
from recipes.caption_sets.word_teacher import Example, WordTeacher
from smart_caption_ros.detection.detector import Detector
from smart_caption_ros.engines import create_engine
from tests.detection.tiny_detectors import BLUE, COLOURS_BGR, GREEN, write_yolox
from training.data.tokenizer import tokenize
from training.errors import DataError


def photographs(count: int) -> list[tuple[str, bytes]]:
    painted = (np.full((30, 40, 3), shade, np.uint8) for shade in range(count))
    return [(f"{number}.jpg", cv2.imencode(".png", image)[1].tobytes()) for number, image in enumerate(painted)]


def mean(frames: NDArray[np.uint8]) -> NDArray[np.float32]:
    return frames.mean(axis=(1, 2, 3), dtype=np.float32)


def test_each_photograph_is_computed_once(tmp_path: Path) -> None:
    batches: list[int] = []

    def counted(frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        batches.append(len(frames))
        return mean(frames)

    given = photographs(70)
    for _ in range(2):
        found = computed_of_photographs(given, 70, counted, tmp_path / "cache", "means")
        assert [float(found[f"{number}.jpg"]) for number in range(70)] == list(range(70))
    assert batches == [32, 32, 6]
    next((tmp_path / "cache").glob("*.npy")).write_bytes(b"damaged")
    computed_of_photographs(given, 70, counted, tmp_path / "cache", "means")
    assert len(batches) == 4


def test_a_file_that_is_no_image_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"broken\.jpg"):
        computed_of_photographs([("broken.jpg", b"nothing")], 1, mean, tmp_path, "means")


def test_objects_are_counted_by_class_and_score(tmp_path: Path) -> None:
    detector = Detector(write_yolox(tmp_path / "yolox.onnx"), create_engine("onnxruntime-cpu", 1), minimum_score=0.15)
    frames = np.zeros((2, 64, 64, 3), np.uint8)
    frames[0, :32, :32] = COLOURS_BGR[BLUE]
    frames[0, 32:, 32:] = np.array(COLOURS_BGR[GREEN]) * 0.4
    counts = object_counts(detector)(frames)
    assert counts.shape == (2, 80, 2)
    labels = counts_by_label(counts[0], detector.class_names)
    certain, possible = labels[BLUE]
    assert certain == possible >= 1
    assert labels[GREEN][0] == 0 < labels[GREEN][1]
    assert counts_by_label(counts[1], detector.class_names) == {}


@pytest.fixture(scope="module")
def teacher() -> WordTeacher:
    """Snow is seen in the features, a man is known by his label, and the word "nice" is said of half at random."""
    random = np.random.default_rng(0)
    examples = []
    for number in range(200):
        features = random.normal(size=8).astype(np.float32)
        snow, man = number % 4 == 0, number % 3 == 0
        features[0] += 4 * snow
        words = ["photo", *["snow"] * snow, *["man"] * man, *["nice"] * bool(random.random() < 0.5), f"rare{number}"]
        examples.append(Example(features, ["person"] if man else ["dog"], [words] * 5))
    return WordTeacher(examples)


def test_words_are_confirmed_by_features_and_by_labels(teacher: WordTeacher) -> None:
    snow = np.array([4, 0, 0, 0, 0, 0, 0, 0], np.float32)
    assert "snow" in teacher.confirmed_words(snow, ["dog"])
    assert "snow" not in teacher.confirmed_words(0 * snow, ["dog"])
    with_label, without = (teacher.confirmed_words(0 * snow, [label]).get("man", 0.0) for label in ("person", "dog"))
    assert with_label > without


def test_a_word_that_nothing_tells_is_not_relied_on(teacher: WordTeacher) -> None:
    assert teacher.least[teacher.words.index("nice")] > teacher.least[teacher.words.index("photo")]


class Lenient(Fluency):
    """Everything reads well."""

    def __init__(self) -> None:
        super().__init__([])

    def reads_well(self, words: object) -> bool:
        return True


def captions(*statements: str, fluency: Fluency | None = None) -> list[str]:
    return captions_from_statements(statements, fluency or Lenient(), "photograph 1")


def test_the_verb_agrees_with_its_subject() -> None:
    (caption,) = captions("four people is playing a game on the beach")
    assert caption in ("four people are playing a game on the beach", "four people playing a game on the beach")


def test_a_colour_joins_the_sentence_that_names_its_noun() -> None:
    found = captions("red bus", "a bus stands at the stop sign")
    assert "a red bus stands at the stop sign" in found
    assert captions("orange bus", "a bus stands at the stop sign")[-1].startswith("an orange bus")


def test_of_two_colours_none_is_taken() -> None:
    found = captions("red bus", "blue bus", "a bus stands at the stop sign")
    assert found[-1] == "a bus stands at the stop sign"


@pytest.mark.parametrize(
    "statement",
    [
        "what is the man doing on the street",
        "two elephants is the man leading through town",
        "glasses is the man wearing in the room",
        "red bus",
        "the photo shows a man",
    ],
)
def test_questions_and_fragments_are_dropped(statement: str) -> None:
    assert captions(statement) == []


def test_what_does_not_read_like_a_caption_is_dropped() -> None:
    fluency = Fluency([tokenize("a cat is on the grass")])
    assert captions("a cat is on the grass", "a grass is on the cat", fluency=fluency) == ["a cat is on the grass"]


def test_short_sentences_about_different_things_are_joined() -> None:
    found = captions("a truck stands at a gate", "two men eat their lunch")
    assert found[0] == "a truck stands at a gate and two men eat their lunch"
