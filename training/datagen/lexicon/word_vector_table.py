"""Make the compact table of word vectors that ships with the package.

    python -m training.datagen.lexicon.word_vector_table ../shared/data/glove/glove.6B.50d.merged.txt

Keeps, of a GloVe text file, the words of COCO's class names and of the captions of Flickr8k and of COCO's 2017
validation split. `refrigerator` takes the vector of `fridge` where the file has the one and not the other.
"""

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer

from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.grounding.errors import CoverageError
from smart_caption_ros.grounding.word_vectors import default_table_path, read_glove, write_table
from training.data.flickr8k import Flickr8k
from training.errors import DataError
from training.paths import data_folder

OUTPUT = default_table_path()
STAND_INS = {"refrigerator": "fridge"}

main = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def caption_vocabulary(data: Path) -> set[str]:
    """Lower-cased words of the captions and of the class names of COCO."""
    coco = json.loads((data / "coco_val2017_captions" / "captions_val2017.json").read_text(encoding="utf-8"))
    texts = [annotation["caption"] for annotation in coco["annotations"]]
    for captions in Flickr8k(data / "flickr8k").captions.values():
        texts.extend(captions)
    tokenise = spacy.blank("en").tokenizer
    words = {token.lower_ for text in texts for token in tokenise(text) if not token.is_space}
    names = (data / "detectors" / "coco_classes.txt").read_text(encoding="utf-8").splitlines()
    return words | {word for name in (*names, *map(normalise, names)) for word in name.split()}


@main.command()
def command(
    glove: Annotated[Path, typer.Argument(help="A GloVe text file.")],
    data: Annotated[
        Path, typer.Option(default_factory=data_folder, help="Folder of the data sets (flickr8k/, detectors/, ...).")
    ],
    output: Annotated[Path, typer.Option(help="The table to write.")] = OUTPUT,
) -> None:
    """Write the table and say what is in it."""
    try:
        wanted = caption_vocabulary(data) | set(STAND_INS.values())
        vectors = {word: vector for word, vector in read_glove(glove) if word in wanted}
    except (CoverageError, DataError, OSError) as error:
        typer.echo(f"word_vector_table: {error}", err=True)
        raise typer.Exit(1) from None
    for word, stand_in in STAND_INS.items():
        if word not in vectors and stand_in in vectors:
            vectors[word] = vectors[stand_in]
    words = sorted(vectors)
    write_table(output, words, np.stack([vectors[word] for word in words]), f"{glove.stem}, {len(words)} words")
    print(f"{output}: {len(words)} of {len(wanted)} words, {output.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
