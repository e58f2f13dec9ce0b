"""Captions of other photographs fit where all that they say is known."""

import pytest

from recipes.caption_sets.fitting_captions import MIN_USES, FittingCaptions, LabelEvidence
from training.evaluation.metrics.chair import Synonyms

SYNONYMS = Synonyms(
    {
        "cat": "cat",
        "dog": "dog",
        "man": "person",
        "person": "person",
        "bench": "bench",
        "tie": "tie",
        "hot dog": "hot dog",
    }
)
TEXTS = [
    "a cat sitting on a bench in a park",
    "a cat sitting on a bench in a kitchen",
    "a cat and a dog on a bench in a park",
    "two cats sitting on a bench in a park",
    "a man sitting on a bench in a park",
    "a person sitting on a bench in a park",
    "a park with trees and a blue sky",
]
WORDS = {"sitting": 0.6, "park": 0.5, "kitchen": 0.0}


def fitting(evidence: LabelEvidence, wanted: int = 9, max_uses: int = 9) -> list[str]:
    return FittingCaptions(TEXTS * MIN_USES, SYNONYMS, max_uses).choose(evidence, wanted)


def evidence(*labels: str, words: dict[str, float] | None = None, **counts: tuple[int, int]) -> LabelEvidence:
    known = WORDS if words is None else words
    return LabelEvidence(frozenset(labels), {word: value for word, value in known.items() if value}, counts)


def test_a_caption_names_the_labels_and_no_other_class() -> None:
    assert fitting(evidence("cat", "bench", cat=(1, 1))) == ["a cat sitting on a bench in a park"]


def test_a_word_that_nobody_confirms_rules_a_caption_out() -> None:
    assert fitting(evidence("cat", "bench", words={"sitting": 0.6})) == []
    in_a_kitchen = evidence("cat", "bench", words={"sitting": 0.6, "kitchen": 0.4})
    assert fitting(in_a_kitchen) == ["a cat sitting on a bench in a kitchen"]


def test_man_is_no_surer_than_its_words() -> None:
    assert fitting(evidence("person", "bench")) == ["a person sitting on a bench in a park"]
    assert fitting(evidence("person", "bench", words={**WORDS, "man": 0.5}))[0].startswith("a man")


def test_numbers_must_be_those_that_are_there() -> None:
    two = evidence("cat", "bench", cat=(2, 2))
    assert fitting(two) == ["two cats sitting on a bench in a park"]
    assert fitting(evidence("cat", "bench", cat=(3, 3))) == []
    assert fitting(evidence("cat", "bench", cat=(1, 3))) == []
    assert len(fitting(evidence("person", "bench", person=(2, 4)))) == 1


@pytest.mark.parametrize("caption", ["a cat behind a bench in a park", "a cat on top of a bench"])
def test_relations_must_be_confirmed_as_other_words_are(caption: str) -> None:
    pool = FittingCaptions([caption] * MIN_USES, SYNONYMS, 9)
    assert pool.choose(evidence("cat", "bench"), 1) == []
    told = {**WORDS, "behind": 1.0, "top": 1.0}
    assert pool.choose(evidence("cat", "bench", words=told), 1) == [caption]


def test_phrases_that_hardly_anybody_writes_are_left_out() -> None:
    common = ["a person on the bench in the park", "the person they said", "a man sitting in a park"]
    rare = ["a person they sitting in a park on the bench"]
    found = FittingCaptions([*common * MIN_USES, *rare], SYNONYMS, 9).choose(
        evidence("person", "bench", words={**WORDS, "they": 1.0}), 9
    )
    assert found == ["a person on the bench in the park"]


def test_a_caption_that_names_a_class_twice_is_left_out() -> None:
    texts = ["a cat next to a cat on a bench", "a man and a person on a bench"] * MIN_USES
    pool = FittingCaptions(texts, SYNONYMS, 9)
    assert pool.choose(evidence("cat", "bench"), 9) == []
    assert pool.choose(evidence("person", "bench", words={"man": 0.5}), 9) == ["a man and a person on a bench"]


def test_a_label_that_may_be_another_word_is_not_relied_on() -> None:
    assert fitting(evidence("dog", "hot dog")) == []


def test_words_that_are_usual_everywhere_count_less() -> None:
    texts = ["a cat in a park", "a cat in a bed"]
    both = evidence("cat", words={"park": 0.5, "bed": 0.5})
    common = [f"a dog in a park near {number} trees" for number in ("two", "three", "four")]
    pool = FittingCaptions([f"{text} under a tree" for text in texts] * MIN_USES + common * MIN_USES, SYNONYMS, 9)
    evident = evidence("cat", words={**dict(both.words), "tree": 0.5, "under": 0.5})
    assert pool.choose(evident, 1) == ["a cat in a bed under a tree"]


def test_a_caption_is_used_for_a_limited_number_of_photographs() -> None:
    pool = FittingCaptions(TEXTS * MIN_USES, SYNONYMS, max_uses=2)
    found = [pool.choose(evidence("cat", "bench"), 1) for _ in range(3)]
    assert [len(chosen) for chosen in found] == [1, 1, 0]
    assert pool.uses.total() == 2


@pytest.mark.parametrize("labels", [(), ("orange",)])
def test_without_labels_nothing_fits(labels: tuple[str, ...]) -> None:
    assert fitting(evidence(*labels)) == []
