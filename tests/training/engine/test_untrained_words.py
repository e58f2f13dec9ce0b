"""Weights of words without examples."""

import pytest
import torch

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.tiny_model import TINY_SIZES, TOKEN_WIDTH, tiny_smart
from training.engine.trained_captioner import UNTRAINED, TrainedCaptioner
from training.engine.untrained_words import DONORS, fill_untrained_words, related_words
from training.models import FAMILIES

WORDS = (
    "a", "dog", "dogs", "cat", "elephant", "elephants", "horse", "bear", "pizza", "car", "zebra", "zebras", "running",
    "xylo",
)  # fmt: skip
VOCABULARY = Vocabulary((*SPECIAL, *WORDS))
UNSEEN = ["zebra", "zebras", "xylo"]


def rows(captioner, *words):
    places = VOCABULARY.encode(words)
    return [captioner.word_embedding.weight[places], captioner.word_projection.weight[places]]


def test_related_words_are_trained_names_of_like_objects_in_the_same_number():
    related = related_words("zebra", VOCABULARY, UNSEEN)
    assert len(related) == DONORS
    assert {"elephant"} <= set(related) <= {"dog", "cat", "elephant", "horse", "bear"}
    assert set(related_words("zebras", VOCABULARY, UNSEEN)) == {"dogs", "elephants"}
    assert set(related_words("xylo", VOCABULARY, UNSEEN)) == {
        "dog", "cat", "elephant", "horse", "bear", "pizza", "car"
    }  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_names_its_word_tables_and_no_other_weights_change(family):
    size = 64  # also that of other tensors
    captioner = FAMILIES[family](FAMILIES[family].Config(size, TOKEN_WIDTH, **TINY_SIZES[family]))
    tables = captioner.word_tables()
    assert all(len(table) == size for table in tables.values())
    assert any("word_projection" in name for name in tables)
    vocabulary = Vocabulary((*SPECIAL, "dog", "zebra", *(f"w{i}" for i in range(size - 6))))
    before = {name: values.clone() for name, values in captioner.state_dict().items()}
    fill_untrained_words(captioner, vocabulary, ["zebra"])
    after = captioner.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert changed <= tables.keys()
    assert all(torch.equal(after[name][5], after[name][4]) for name in changed)


def test_a_checkpoint_is_read_with_the_weights_filled(tmp_path):
    captioner = tiny_smart(vocabulary_size=len(VOCABULARY))
    record = {"name": "tiny", UNTRAINED: ["zebras"]}
    TrainedCaptioner("smart", captioner, None, VOCABULARY, record).save(tmp_path / "best.safetensors")
    loaded = TrainedCaptioner.load(tmp_path / "best.safetensors").captioner
    for found, donors in zip(rows(loaded, "zebras"), rows(captioner, "dogs", "elephants"), strict=True):
        torch.testing.assert_close(found[0], donors.mean(dim=0))
