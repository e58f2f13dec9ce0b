"""Make the table of word vectors that ships with the package.

    python -m recipes.lexicon.word_vector_table ../shared/data/glove/glove.6B.50d.merged.txt

The table keeps those words of a GloVe text file that occur in COCO's class names or in the captions of Flickr8k or of
COCO's 2017 validation split. ``refrigerator`` takes the vector of ``fridge`` where the file has no vector for it.
"""

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer

from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.grounding.errors import CoverageError
from smart_caption_ros.grounding.word_vectors import default_table_path, read_glove, write_table
from training.command_line import run_command
from training.data.coco import read_captions
from training.data.flickr8k import Flickr8k
from training.errors import DataError
from training.paths import data_folder

OUTPUT = default_table_path()
STAND_INS = {"refrigerator": "fridge"}
"""Words that may lack a vector, and the words whose vectors they then take."""


def caption_vocabulary(data: Path) -> set[str]:
    """Collect the lower-cased words of the captions and of COCO's class names.

    Raises:
        DataError: a data set is missing or malformed.
        OSError: the list of classes is missing.
    """
    coco = read_captions(data / "coco_val2017_captions" / "captions_val2017.json").captions
    texts = [text for captions in (*coco.values(), *Flickr8k(data / "flickr8k").captions.values()) for text in captions]
    tokenise = spacy.blank("en").tokenizer
    words = {token.lower_ for text in texts for token in tokenise(text) if not token.is_space}
    names = (data / "detectors" / "coco_classes.txt").read_text(encoding="utf-8").splitlines()
    return words | {word for name in (*names, *map(normalise, names)) for word in name.split()}


def word_vector_table(
    glove: Annotated[Path, typer.Argument(help="GloVe text file.")],
    data: Annotated[
        Path,
        typer.Option(
            default_factory=data_folder,
            show_default=False,
            help="Folder of the data sets (flickr8k/, detectors/, ...).",
        ),
    ],
    output: Annotated[Path, typer.Option(help="Table to write.")] = OUTPUT,
) -> None:
    """Write the table of word vectors and print its size."""
    wanted = caption_vocabulary(data) | set(STAND_INS.values())
    vectors = {word: vector for word, vector in read_glove(glove) if word in wanted}
    for word, stand_in in STAND_INS.items():
        if word not in vectors and stand_in in vectors:
            vectors[word] = vectors[stand_in]
    words = sorted(vectors)
    write_table(output, words, np.stack([vectors[word] for word in words]), f"{glove.stem}, {len(words)} words")
    print(f"{output}: {len(words)} of {len(wanted)} words, {output.stat().st_size / 1e6:.2f} MB")


def main() -> int:
    """Run the command and return its exit status."""
    program = "python -m recipes.lexicon.word_vector_table"
    return run_command(word_vector_table, program, (CoverageError, DataError))


if __name__ == "__main__":
    sys.exit(main())
