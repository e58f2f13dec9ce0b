"""Training data of the noun tagger: corpora tokenised by spaCy, captions labelled where the labels are certain."""

import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import spacy

from recipes.lexicon import noun_tagger, word_vector_table
from recipes.lexicon.noun_tagger import to_example
from recipes.lexicon.tagged_sentences import label_caption, read_brown, read_conll, unambiguous_words
from smart_caption_ros.grounding import NounCoverage, WordVectors


def run(monkeypatch: pytest.MonkeyPatch, command: ModuleType, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["command", *map(str, arguments)])
    return int(command.main())


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "brown.zip", "w") as brown:
        for number in range(11):
            brown.writestr(f"brown/ca{number:02}", f"\n\tThe/at dog's/nn$ term-end/nn don't/do* run{number}/vb ./.\n\n")
        brown.writestr("brown/README", "no corpus")
    with zipfile.ZipFile(tmp_path / "conll2000.zip", "w") as conll:
        conll.writestr("conll2000/test.txt", "The DT B-NP\ndog NN I-NP\n\n")
        conll.writestr("conll2000/train.txt", "Dogs NNS B-NP\nrun VBP B-VP\n. . O\n\nHis PRP$ B-NP\ndog NN I-NP\n\n")
    return tmp_path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A minimal data folder for both commands."""
    written = {
        "flickr8k/images_224.zip": "",
        "flickr8k/captions.csv": "image,caption\na.jpg,A dog runs over the grass .\n",
        "flickr8k/train.txt": "a.jpg\n",
        "flickr8k/dev.txt": "",
        "flickr8k/test.txt": "",
        "coco_val2017_captions/captions_val2017.json": json.dumps(
            {"annotations": [{"image_id": number, "caption": "Two cups on a table."} for number in range(50)]}
        ),
        "detectors/coco_classes.txt": "person\ndiningtable\nrefrigerator\n",
    }
    for name, text in written.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text(text)
    corpora = tmp_path / "data" / "lexicon" / "tagged_corpora"
    corpora.mkdir(parents=True)
    with zipfile.ZipFile(corpora / "brown.zip", "w") as brown:
        for number in range(11):
            brown.writestr(f"brown/ca{number:02}", "The/at dog/nn sees/vbz two/cd cups/nns ./.\n" * 20)
    with zipfile.ZipFile(corpora / "conll2000.zip", "w") as conll:
        for part in ("train", "test"):
            conll.writestr(f"conll2000/{part}.txt", "The DT B-NP\ndog NN I-NP\nran VBD B-VP\n\n" * 20)
    return tmp_path / "data"


def test_the_command_trains_a_pipeline_that_coverage_can_use(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "pipeline"
    output.mkdir()
    (output / "left_over").touch()
    assert run(monkeypatch, noun_tagger, "--data", data, "--output", output, "--sentences", 400) == 0
    assert json.loads(capsys.readouterr().out)["brown"]["f1"] > 0.9
    assert not (output / "left_over").exists()
    scored = NounCoverage.load(output).score("the dog sees two cups .", ["dog", "cup"])
    assert (scored.coverage, scored.noun_support) == (1, 1)


def test_the_table_holds_the_words_of_captions_and_classes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    glove, output = tmp_path / "glove.txt", tmp_path / "table.npz"
    glove.write_text("dog 1 0\ncups 0 1\ntreaty 1 1\nfridge 0.5 0.5\ndining 1 2\ntable 2 1\n")
    assert run(monkeypatch, word_vector_table, glove, "--data", data, "--output", output) == 0
    vectors = WordVectors.load(output)
    assert len(vectors) == 6
    assert "treaty" not in vectors
    assert list(vectors.mean(["refrigerator"])) == [0.5, 0.5]


@pytest.mark.parametrize("command", [noun_tagger, word_vector_table])
def test_missing_data_is_reported_in_one_sentence(
    command: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    glove = [tmp_path / "glove.txt"] if command is word_vector_table else []
    assert run(monkeypatch, command, *glove, "--data", tmp_path, "--output", tmp_path / "out") == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert "No such file" in error or "no such file" in error
    assert not (tmp_path / "out").exists()


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


def test_parts_of_speech_are_transferred_to_spacys_tokens(corpora: Path) -> None:
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


def test_a_word_with_one_part_of_speech_nearly_always_is_unambiguous() -> None:
    sentences = [[("Dog", "NOUN"), ("play", part)] for part in ("NOUN", "VERB", "VERB")]
    assert unambiguous_words(sentences) == {"dog": "NOUN"}


@pytest.mark.parametrize(
    ("caption", "word", "part"),
    [
        ("a dog jumps over a fence", "jumps", "VERB"),
        ("a man makes two high jumps", "jumps", "NOUN"),
        ("a man jumps", "jumps", ""),
        ("the whatsit is blue", "whatsit", "NOUN"),
        ("a man in an orange shirt", "orange", "ADJ"),
        ("a man eats an orange", "orange", ""),
        ("a dog whatsiting along the beach", "whatsiting", "VERB"),
    ],
)
def test_words_of_captions_are_labelled_only_where_a_rule_applies(caption: str, word: str, part: str) -> None:
    labels = dict(label_caption(caption.split(), {"over": "ADP", "high": "ADJ", "blue": "ADJ", "along": "ADP"}))
    assert labels[word] == part
