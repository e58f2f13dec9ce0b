"""The PTB tokeniser against the toolkit's own class."""

import pytest
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

from tests.training.evaluation.metrics.needs_java import fake_java, needs_java
from training.evaluation.metrics.java import ptb_tokenize
from training.evaluation.metrics.metric import MetricError

CAPTIONS = [
    "A man, riding a wave on top of a surfboard.",
    "There's a dog - it doesn't bark!",
    "Two  (small) cats; they're sleeping...",
    'A sign that says "STOP" & "go"',
    "  white-and-black photo of people\tat 5:30 p.m. ",
]


@needs_java
def test_captions_are_tokenised_as_by_the_toolkit():
    theirs = PTBTokenizer().tokenize({i: [{"caption": caption}] for i, caption in enumerate(CAPTIONS)})
    assert ptb_tokenize(CAPTIONS) == [theirs[i][0] for i in range(len(CAPTIONS))]


@needs_java
def test_empty_captions_and_line_ends_of_any_kind_keep_the_captions_apart():
    captions = ["a dog\nruns", "", "a cat\u2028sits\x85down\r\nnow", ".", "café 東京"]
    assert ptb_tokenize(captions) == ["a dog runs", "", "a cat sits down now", "", "café 東京"]


def test_an_answer_of_another_length_is_refused(tmp_path, monkeypatch):
    fake_java(tmp_path, "echo one", monkeypatch)
    with pytest.raises(MetricError, match="answered 1 lines to 2 captions"):
        ptb_tokenize(["one", "two"])
