"""What the noun tagger is trained with: corpora cut as spaCy cuts, captions labelled where the labels are sure."""

import zipfile
from pathlib import Path

import pytest
import spacy

from training.data.tagged_corpora import label_caption, read_brown, read_conll, unambiguous_words
from training.noun_tagger import to_example


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "brown.zip", "w") as brown:
        for number in range(11):
            brown.writestr(f"brown/ca{number:02}", f"\n\tThe/at dog's/nn$ term-end/nn don't/do* run{number}/vb ./.\n\n")
        brown.writestr("brown/README", "no corpus")
    with zipfile.ZipFile(tmp_path / "conll2000.zip", "w") as conll:
        conll.writestr("conll2000/train.txt", "Dogs NNS B-NP\nrun VBP B-VP\n. . O\n\nHis PRP$ B-NP\ndog NN I-NP\n\n")
    return tmp_path


def test_corpora_are_read_with_universal_parts_of_speech(corpora: Path) -> None:
    assert list(read_conll(corpora / "conll2000.zip", "train")) == [
        [("Dogs", "NOUN"), ("run", "VERB"), (".", "PUNCT")],
        [("His", "PRON"), ("dog", "NOUN")],
    ]
    first = next(read_brown(corpora / "brown.zip", held_out=True))
    assert [part for _, part in first] == ["DET", "NOUN", "NOUN", "VERB", "VERB", "PUNCT"]


def test_every_tenth_file_of_brown_is_held_out_and_no_other(corpora: Path) -> None:
    held_out = [sentence[4][0] for sentence in read_brown(corpora / "brown.zip", held_out=True)]
    others = [sentence[4][0] for sentence in read_brown(corpora / "brown.zip", held_out=False)]
    assert held_out == ["run0", "run10"]
    assert others == [f"run{number}" for number in range(1, 10)]


def test_parts_of_speech_go_to_the_tokens_that_the_tokeniser_makes(corpora: Path) -> None:
    sentence = next(read_brown(corpora / "brown.zip", held_out=True))
    example = to_example(spacy.blank("en"), sentence)
    assert [(token.text, token.pos_) for token in example.reference] == [
        ("The", "DET"),
        ("dog", "NOUN"),
        ("'s", "PART"),
        ("term", ""),
        ("-", "PUNCT"),
        ("end", "NOUN"),
        ("do", ""),
        ("n't", "PART"),
        ("run0", "VERB"),
        (".", "PUNCT"),
    ]


def test_words_count_as_unambiguous_from_their_share() -> None:
    sentences = [[("Dog", "NOUN"), ("play", part)] for part in ("NOUN", "VERB", "VERB")]
    assert unambiguous_words(sentences) == {"dog": "NOUN"}


@pytest.mark.parametrize(
    ("caption", "word", "part"),
    [
        ("a dog jumps over a fence", "jumps", "VERB"),
        ("a man makes two high jumps", "jumps", ""),
        ("the whatsit is blue", "whatsit", "NOUN"),
        ("a man in an orange shirt", "orange", "ADJ"),
        ("a man eats an orange", "orange", ""),
        ("a dog whatsiting along the beach", "whatsiting", "VERB"),
    ],
)
def test_captions_are_labelled_where_it_is_sure(caption: str, word: str, part: str) -> None:
    labels = dict(label_caption(caption.split(), {"over": "ADP", "high": "ADJ", "blue": "ADJ", "along": "ADP"}))
    assert labels[word] == part
