"""Word vectors: the table that ships, GloVe text files, and what is refused."""

import numpy as np
import pytest

from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.grounding import CoverageError, WordVectors
from smart_caption_ros.grounding.word_vectors import DEFAULT_TABLE


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "smart_caption_ros" / "word_vectors"


def cosine(vectors, a, b):
    x, y = (vectors.mean(words.split()) for words in (a, b))
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


def test_the_table_that_ships_knows_objects_and_their_likeness():
    vectors = WordVectors.load()
    assert vectors.dimension == 50
    assert cosine(vectors, "sofa", "couch") > cosine(vectors, "sofa", "bottle")
    for name in (*(name for name in COCO_CLASSES if " " in name), "refrigerator", "television", "chair", "person"):
        assert vectors.mean(name.split()) is not None, name


def test_a_text_file_is_converted_once_into_the_cache_and_memory_mapped(example_vectors, cache):
    first = WordVectors.load(example_vectors)
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    second = WordVectors.load(example_vectors)
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before
    assert [path.name for path in cache.iterdir() if "unfinished" in path.name] == []
    assert list(example_vectors.parent.glob("example*")) == [example_vectors]
    for vectors in (first, second):
        assert isinstance(vectors._rows, np.memmap)
        assert len(vectors._rows) == 6
        np.testing.assert_array_equal(vectors.mean(["dining", "table"]), np.float32([0.8, 0.6]))


def test_a_changed_text_file_is_converted_again(example_vectors):
    WordVectors.load(example_vectors)
    example_vectors.write_text("chair 1 2 3\n")
    vectors = WordVectors.load(example_vectors)
    assert (len(vectors._rows), vectors.dimension, vectors.mean(["cup"])) == (1, 3, None)


def test_a_cache_that_cannot_be_written_is_named(example_vectors, cache):
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    with pytest.raises(CoverageError, match=r"cannot be kept in .*word_vectors"):
        WordVectors.load(example_vectors)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2 3\ncup 1 2 3\nsofa 4 5 6\n", ["cup", "sofa"]),
        ("cup 1 2 3\nat name 4 5 6\n", ["cup", "at name"]),
        ("cup 1 2 3\ncup 4 5 6\n", ["cup"]),
        ("cup 1 2 3 \r\nsofa 4 5 6", ["cup", "sofa"]),
        ("\ufeffcup 1 2 3\nsofa 4 5 6", ["cup", "sofa"]),
        ("\ufeff2 3\ncup 1 2 3\nsofa 4 5 6", ["cup", "sofa"]),
    ],
    ids=["word2vec header", "word with a space", "repeated word", "line ends", "mark", "mark before the header"],
)
def test_files_are_read_as_they_are_found(tmp_path, text, words):
    (tmp_path / "v.txt").write_bytes(text.encode())
    vectors = WordVectors.load(tmp_path / "v.txt")
    assert (len(vectors._rows), vectors.dimension) == (len(words), 3)
    assert all(vectors.mean([word]) is not None for word in words)
    np.testing.assert_array_equal(vectors.mean(["cup"]), np.float32([1, 2, 3]))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "holds no word vectors"),
        (b"cup\n", "line 1: expected a word and numbers"),
        (b"cup 1 2\nsofa 1\n", "line 2: expected a word and 2 numbers"),
        (b"cup 1 2\nsofa 1 two\n", "line 2: expected"),
        (b"cup 1 nan\n", "line 1: expected"),
        (b"cup 1 2\n\n", "line 2: expected"),
        (b"\x89PNG\r\n\x1a\n\x00", "line 1: expected"),
    ],
)
def test_what_is_no_glove_file_is_refused_with_the_line(tmp_path, text, complaint):
    path = tmp_path / "v.txt"
    path.write_bytes(text)
    with pytest.raises(CoverageError, match=complaint):
        WordVectors.load(path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "v.txt"]


def test_a_missing_file_and_a_damaged_table_are_refused(tmp_path):
    with pytest.raises(CoverageError, match="no such file of word vectors"):
        WordVectors.load(tmp_path / "nowhere.txt")
    path = tmp_path / "table.npz"
    path.write_bytes(DEFAULT_TABLE.read_bytes()[:-40])
    with pytest.raises(CoverageError, match="is no table of word vectors"):
        WordVectors.load(path)
