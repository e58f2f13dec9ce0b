"""List the words that people use in captions for each class of a captioner's detector.

    python -m recipes.lexicon.class_word_forms

The words are those of the table of class words, in both numbers, that occur in the captions of ``caption_texts`` and in
COCO's 2017 validation captions, and the words of the class names themselves.
:mod:`training.data.vocabulary_words` reads the list.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from recipes.caption_sets.caption_texts import read_pool
from smart_caption_ros.files import write_text_atomically
from smart_caption_ros.grounding import ClassWords
from training.command_line import run_command
from training.data.inflection import singular
from training.data.tokenizer import tokenize
from training.data.vocabulary_words import PATH
from training.errors import DataError
from training.paths import data_folder
from training.vision.detection_classes import DETECTION_CLASSES

_HEADER = """\
# Words that people use in captions for each class of the detector, made by
# `python -m recipes.lexicon.class_word_forms`: words of COCO captions and Flickr30k that occur often enough
# there, of which no sentence is copied.
"""


def class_word_forms(counts: Counter[str], minimum_count: int) -> dict[str, list[str]]:
    """Find the words for each class.

    Args:
        counts: how often each word occurs in captions.
        minimum_count: words that occur less often are left out, unless they are part of a class name.
    """
    table = ClassWords.load()
    forms: dict[str, set[str]] = {name: set(name.split()) for name in sorted(DETECTION_CLASSES)}
    for word, count in counts.items():
        if count < minimum_count or not word.isalpha():
            continue
        for known in {word, singular(word)}:
            for name in table.classes_of.get(known, ()):
                forms.get(name, set()).add(word)
            if known in forms:
                forms[known].add(word)
    return {name: sorted(words) for name, words in forms.items()}


def write_class_word_forms(
    data: Annotated[Path, typer.Option(help="Folder of the data sets.", default_factory=data_folder)],
    minimum_count: Annotated[int, typer.Option(min=1, help="Occurrences of a word in the captions.")] = 20,
    output: Annotated[Path, typer.Option(help="File to write.")] = PATH,
) -> None:
    """Write the list and print its size."""
    counts = Counter(word for caption in read_pool(data) for word in tokenize(caption))
    forms = class_word_forms(counts, minimum_count)
    write_text_atomically(output, _HEADER + "".join(f"{name}: {' '.join(words)}\n" for name, words in forms.items()))
    print(f"{output}: {len(set().union(*forms.values()))} words of {len(forms)} classes")


def main() -> int:
    """Run the command and return its exit status."""
    return run_command(write_class_word_forms, "python -m recipes.lexicon.class_word_forms", (DataError,))


if __name__ == "__main__":
    sys.exit(main())
