"""Word vectors of a vocabulary from a GloVe text file."""

from pathlib import Path

import pytest

from training.data.word_vectors import read_vectors
from training.errors import DataError


def test_words_of_the_vocabulary_get_their_first_vector(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("dog 1 2\ncat 3 4\ndog 5 6\nzebra 7 8\n")
    found = read_vectors(tmp_path / "glove.txt", ["<pad>", "cat", "dog", "ladle"])
    assert found.vectors.tolist() == [[0, 0], [3, 4], [1, 2], [0, 0]]
    assert found.known.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), ("dog 1 2\ncat 3\n", "line 2"), ("zebra 1 2\n", "none of the 2 words")],
)
def test_a_file_without_the_words_is_refused_in_a_sentence(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "glove.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        read_vectors(tmp_path / "glove.txt", ["cat", "dog"])
