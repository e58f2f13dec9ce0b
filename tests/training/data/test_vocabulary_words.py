"""Required words and vectors of a vocabulary."""

import pytest

from training.data.tokenizer import build_vocabulary
from training.data.vocabulary_words import read_vectors, words_of_detector
from training.errors import DataError
from training.vision.yolox import DETECTION_CLASSES


def test_every_class_name_of_the_detector_is_required_and_the_words_people_use():
    words = words_of_detector()
    assert {part for name in DETECTION_CLASSES for part in name.split()} <= words
    assert {"giraffes", "woman", "sofa", "tv", "hydrant", "people"} <= words
    assert not {"davenport", "the", "kitchen"} & words


def test_a_required_word_is_in_the_vocabulary_however_rare_it_is():
    counts = {"dog": 9, "giraffe": 1, "rare": 2}
    assert build_vocabulary(counts, 5, {"giraffe", "zebra", "dog"}).words[4:] == ("dog", "giraffe", "zebra")
    assert build_vocabulary(counts, 5).words[4:] == ("dog",)


def test_words_of_the_vocabulary_get_their_first_vector(tmp_path):
    (tmp_path / "glove.txt").write_text("dog 1 2\ncat 3 4\ndog 5 6\nzebra 7 8\n")
    vectors, known = read_vectors(tmp_path / "glove.txt", ["<pad>", "cat", "dog", "ladle"])
    assert vectors.tolist() == [[0, 0], [3, 4], [1, 2], [0, 0]]
    assert known.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), ("dog 1 2\ncat 3\n", "line 2"), ("zebra 1 2\n", "none of the 2 words")],
)
def test_a_file_without_the_words_is_refused_in_a_sentence(tmp_path, content, message):
    if content is not None:
        (tmp_path / "glove.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        read_vectors(tmp_path / "glove.txt", ["cat", "dog"])
