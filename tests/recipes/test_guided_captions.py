"""Captions by a trained captioner that knows which objects are in a photograph."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from recipes.guided_captions import GuidedCaptioner, KnownPhotograph
from tests.tiny_model import tiny_trained
from training.data.noun_evidence import DecidedNouns, NounEvidence
from training.guided_captions import main

FRAMES = np.random.default_rng(3).integers(0, 256, (8, 224, 224, 3), np.uint8)
WORDS = [f"w{index}" for index in range(4, 60)]
DECIDED = DecidedNouns({word: word for word in WORDS[:40]}, frozenset({"w4"}))


def captions(shown: set[str], *, possible: frozenset[str] = frozenset(), statements: tuple[str, ...] = ()) -> list[str]:
    known = NounEvidence(DECIDED, frozenset(shown), possible)
    photographs = [KnownPhotograph(f"{index}.jpg", True, known, statements) for index in range(len(FRAMES))]
    captioned = list(GuidedCaptioner(tiny_trained()).captions(FRAMES, photographs))
    assert [each.image for each in captioned] == [f"{index}.jpg" for index in range(len(FRAMES))]
    return [" ".join(each.sentences) for each in captioned]


def said(sentences: list[str]) -> set[str]:
    return {word for sentence in sentences for word in sentence.split()}


def test_captions_name_no_decided_object_that_is_not_there() -> None:
    shown = set(WORDS[5:35])
    found = captions(shown)
    assert any(found)
    assert said(found) & DECIDED.object_of.keys() <= shown | DECIDED.background


def test_every_caption_names_an_object() -> None:
    for sentence in filter(None, captions(set(WORDS[5:35]))):
        assert set(sentence.split()) & (DECIDED.object_of.keys() - DECIDED.background)


def test_objects_that_may_be_there_are_not_named() -> None:
    possible = frozenset(WORDS[20:35])
    assert not said(captions(set(WORDS[5:20]), possible=possible)) & possible


def test_a_photograph_without_a_known_object_gets_no_caption() -> None:
    assert not any(captions(set()))


def test_words_of_statements_are_raised() -> None:
    shown, free = set(WORDS[5:35]), set(WORDS[40:])
    without = sum(word in free for sentence in captions(shown) for word in sentence.split())
    raised = captions(shown, statements=tuple(WORDS[40:]))
    assert sum(word in free for sentence in raised for word in sentence.split()) > without


def test_missing_evidence_is_said_with_the_command_that_makes_it(
    tmp_path: Path, tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data" / "coco_photographs"
    data.mkdir(parents=True)
    entry = {"image": "a.jpg", "part": "train", "indoor": True, "objects": ["cup"]}
    (data / "captions.jsonl").write_text(json.dumps(entry) + "\n")
    folders = ["--data", str(data.parent), "--noun-evidence", str(tmp_path / "none"), "-o", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["guided_captions", str(tiny_checkpoint), *folders])
    assert main() == 1
    message = capsys.readouterr().err
    assert "python -m training.noun_evidence" in message
    assert "Traceback" not in message
