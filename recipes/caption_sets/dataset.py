"""Make the caption sets.

FOLDER/coco_photographs/    photographs of coco_photographs; images_256.zip is a link to the archive in the data
FOLDER/nyu_rooms/           photographs of nyu_rooms, resized to 256 x 256
FOLDER/features/, counts/   what networks computed, to continue a run that was stopped
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from tqdm import tqdm

from recipes.caption_sets.caption_texts import read_pool, read_position_sentences
from recipes.caption_sets.captions_file import (
    CaptionedImage,
    link_archive,
    with_few_uses,
    write_archive,
    write_captions,
)
from recipes.caption_sets.described_rooms import captions_of_rooms
from recipes.caption_sets.fluency import Fluency
from recipes.caption_sets.labelled_photographs import captions_of_labelled
from recipes.rooms.photographs import NYU, RoomsData
from recipes.rooms.words import frequent_words
from training.data.coco_photographs import IMAGES
from training.data.tokenizer import tokenize
from training.errors import DataError

LABELLED, ROOMS = "coco_photographs", NYU
MAX_USES = 12
"""Default number of photographs that may share a sentence."""
_MIN_USES_OF_WORDS = 3
"""How often a word must occur in people's captions, so that captions of rooms may have it."""


@dataclass(frozen=True)
class Report:
    """The data sets by name."""

    sets: dict[str, list[CaptionedImage]]

    def table(self) -> Table:
        """Count photographs, captions, different captions and words, and the uses of the commonest caption."""
        table = Table("set", "photographs", "captions", "different", "words", "uses of the commonest")
        table.columns[0].overflow = "fold"
        for column in table.columns[1:]:
            column.justify = "right"
        for name, images in self.sets.items():
            captions = Counter(sentence for image in images for sentence in image.sentences)
            words = {word for caption in captions for word in tokenize(caption)}
            commonest = max(captions.values(), default=0)
            row = (len(images), captions.total(), len(captions), len(words), commonest)
            table.add_row(name, *map(str, row))
        return table


def make_caption_sets(data: Path, output: Path, max_uses: int = MAX_USES) -> Report:
    """Write both data sets.

    Args:
        data: folder of the data sets, of ``backbones/``, ``detectors/`` and ``lexicon/``.
        output: folder to write; existing data sets are replaced.
        max_uses: photographs of a set that may share a sentence.

    Raises:
        BackboneError, DataError: data is missing or malformed.
        OSError: a file cannot be written.
    """
    rooms = RoomsData.open(data)
    nyu = [photograph for photograph in rooms.photographs if photograph.origin == NYU]
    pool = read_pool(data)
    fluency = Fluency(map(tokenize, tqdm(pool, "people's captions", unit="caption", mininterval=1)))
    labelled = with_few_uses(captions_of_labelled(data, output, pool, fluency, max_uses), max_uses)
    # Only rooms may be described as sentences about positions are: "the lamp on the desk by the window".
    fluency.add(map(tokenize, read_position_sentences(data)))
    known = frequent_words(pool, _MIN_USES_OF_WORDS)
    described = with_few_uses(captions_of_rooms(data, nyu, fluency, known), max_uses)
    for name, images in ((LABELLED, labelled), (ROOMS, described)):
        if not images:
            raise DataError(f"{data}: no photograph of {name} gets a caption")
    link_archive(output / LABELLED, data / LABELLED / IMAGES)
    captioned = {image.image for image in described}
    chosen = [photograph for photograph in nyu if photograph.file in captioned]
    write_archive(output / ROOMS, ((photograph.file, encoded) for photograph, encoded in rooms.encoded(chosen)))
    write_captions(output / LABELLED, labelled)
    write_captions(output / ROOMS, described)
    return Report({LABELLED: labelled, ROOMS: described})
