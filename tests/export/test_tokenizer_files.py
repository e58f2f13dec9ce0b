"""Published tokenisers become tables of pieces whose sentences are those that the tokenisers decode."""

import functools
import json
import random
import re
from pathlib import Path

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers
from transformers import BartTokenizer, BertTokenizerFast, GPT2TokenizerFast, PreTrainedTokenizerFast

from export.import_checkpoint.published import ImportCheckpointError
from export.import_checkpoint.tokenizer_files import published_words, read_tokenizer
from smart_caption_ros.captioning.vocabulary import word_starts

ROWS = 400
TEXTS = Path(__file__).resolve().parent.parent / "grounding" / "annotated_captions.txt"
PUNCTUATED = [
    "a man's t-shirt, a dog's bowl", "the dog isn't here.", "two dogs' leads", "a sign reads 'stop'!", "is it a cat?",
    "a café table with crème brûlée", "a  wide room", "(blurred) 3.5 m away", "we've seen they're 2,000", "a “red” bus",
    "a man ' s hat ; it 's \U0001f600", "fish & chips: 50% off #1", "it do n't move , i 'm sure .",
]  # fmt: skip


def captions():
    """Captions as people write them, and such with all that stands without a space."""
    lines = [re.sub(r"[^\w ',.-]", "", line) for line in TEXTS.read_text().splitlines() if not line.startswith("#")]
    return [line.lower().strip() for line in lines if line.strip()][:200] + PUNCTUATED


def word_piece(folder):
    learner = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.normalizer, learner.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    learner.train_from_iterator(captions(), trainers.WordPieceTrainer(vocab_size=ROWS, special_tokens=special))
    learner.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    tokenizer = BertTokenizerFast(tokenizer_object=learner, clean_up_tokenization_spaces=True)
    tokenizer.save_pretrained(folder)
    return tokenizer


def byte_pairs(folder, kind=GPT2TokenizerFast, special=("<|endoftext|>",), **roles):
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learner.train_from_iterator(
        captions(),
        trainers.BpeTrainer(
            vocab_size=ROWS,
            special_tokens=[*special],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    learner.decoder = decoders.ByteLevel()
    tokenizer = kind(tokenizer_object=learner, **roles)
    tokenizer.save_pretrained(folder)
    return tokenizer


KINDS = {
    "WordPiece": word_piece,
    "byte pairs": byte_pairs,
    "Florence-2": functools.partial(
        byte_pairs, kind=BartTokenizer, special=["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    ),
    "SmolVLM": functools.partial(
        byte_pairs, kind=PreTrainedTokenizerFast, special=["<|endoftext|>", "<|im_start|>", "<end_of_utterance>"],
        bos_token="<|im_start|>", eos_token="<end_of_utterance>", pad_token="<end_of_utterance>",
    ),
}  # fmt: skip


def imported(folder, tokenizer):
    end = tokenizer.sep_token_id or tokenizer.eos_token_id
    frame = (tokenizer.pad_token_id or end, tokenizer.cls_token_id or end, end)
    return published_words(read_tokenizer(folder), len(tokenizer), *frame)


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_are_those_of_the_published_tokeniser(kind, tmp_path):
    tokenizer = KINDS[kind](tmp_path)
    words = imported(tmp_path, tokenizer)
    assert sorted(set(words.order)) == list(range(len(tokenizer)))
    several = 0
    for caption in captions():
        ids = tokenizer.encode(caption, add_special_tokens=False)
        wanted = tokenizer.decode(ids, skip_special_tokens=True).strip()
        ours = [1, *words.encode(ids), 2, 9]
        sentence, said = words.vocabulary.sentence(ours), words.vocabulary.decode(ours)
        assert sentence == wanted
        places = words.vocabulary.word_places(ours)
        assert len(said) == len(places)
        several += any(len(pieces) > 1 for pieces in places)
        for word, start in zip(said, word_starts(said, sentence), strict=True):
            assert sentence[start : start + len(word)] == word
    assert several > 20


@pytest.mark.parametrize("kind", ["Florence-2", "SmolVLM"])
def test_a_thousand_lists_of_any_pieces_are_sentences_of_the_published_tokeniser(kind, tmp_path):
    tokenizer = KINDS[kind](tmp_path)
    words = imported(tmp_path, tokenizer)
    pieces, draw = words.order[4:], random.Random(0)
    for _ in range(1000):
        ids = draw.choices(pieces, k=draw.randint(1, 30))
        assert words.vocabulary.sentence(words.encode(ids)) == tokenizer.decode(ids, skip_special_tokens=True).strip()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("WordPiece", "the man ' s dog , on a t - shirt ."),
        ("byte pairs", "the man 's dog , on a t-shirt ."),
    ],
)
def test_punctuation_is_no_part_of_the_word_before_it(kind, said, tmp_path):
    tokenizer = KINDS[kind](tmp_path)
    words = imported(tmp_path, tokenizer)
    ids = tokenizer.encode("the man's dog, on a t-shirt.", add_special_tokens=False)
    assert words.vocabulary.decode(words.encode(ids)) == said.split()


def test_a_tokeniser_of_another_model_is_refused(tmp_path):
    word_piece(tmp_path)
    files = read_tokenizer(tmp_path)
    with pytest.raises(ImportCheckpointError, match=r"has 400 pieces .* table has 300 words"):
        published_words(files, 300, 0, 2, 3)
    with pytest.raises(ImportCheckpointError, match=r"table has 30522 words"):
        published_words(files, 30522, 0, 2, 3)
    with pytest.raises(ImportCheckpointError, match=r"id 200 is end, which is the word"):
        published_words(files, ROWS, 0, 2, 200)


def test_another_kind_of_tokeniser_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "Unigram", "vocab": []}}))
    with pytest.raises(ImportCheckpointError, match="the tokeniser is Unigram"):
        read_tokenizer(tmp_path)
