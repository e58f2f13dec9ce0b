"""A text is new if it speaks of other things."""

from __future__ import annotations

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from smart_caption_ros.msg import Caption

from smart_caption_ros.grounding import NounCoverage
from smart_caption_ros.grounding.named_objects import ground_caption
from smart_caption_ros.nodes.answering import ImageAnswer
from smart_caption_ros.nodes.evidence import Evidence, ObjectOrigin
from smart_caption_ros.nodes.text_filter import TextFilter
from tests.nodes.fake_captioner import shade_caption

pytestmark = pytest.mark.needs_ros


def answer(text: str, coverage: NounCoverage | None = None) -> ImageAnswer:
    caption = shade_caption(9, 64, 48)
    vars(caption)["text"] = text
    grounding = ground_caption(coverage, caption) if coverage is not None else None
    evidence = Evidence(caption, ObjectOrigin.NONE, grounding)
    return ImageAnswer(Caption(text=text), work_s=0.1, evidence=evidence)


def test_the_same_nouns_in_other_words_are_nothing_new(coverage: NounCoverage) -> None:
    texts = TextFilter()
    said = [
        texts.is_new(answer(text, coverage))
        for text in (
            "a dog on a couch",
            "a couch with two dogs",
            "a brown dog lying on a couch",
            "a dog next to a chair",
            "a dog on a couch",
        )
    ]
    assert said == [True, False, False, True, True]


def test_without_nouns_the_words_are_compared(coverage: NounCoverage) -> None:
    texts = TextFilter()
    assert [texts.is_new(answer(text)) for text in ("a dog", "a dog", "the dog")] == [True, False, True]
    assert texts.is_new(answer("very dark", coverage))
    assert not texts.is_new(answer("very dark", coverage))


def test_what_is_forgotten_is_new_again() -> None:
    texts = TextFilter()
    assert texts.is_new(answer("a dog"))
    texts.forget()
    assert texts.is_new(answer("a dog"))
