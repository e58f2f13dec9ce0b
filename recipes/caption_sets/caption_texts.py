"""People's captions of photographs that are not in the data: ``caption_texts`` and COCO's validation captions.

Captions of measured photographs are left out: by the number of the photograph where it is known, and by their words.
"""

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from recipes.rooms.photographs import COCO, EVALUATION_ONLY
from training.data.coco import read_captions
from training.data.coco_photographs import CocoPhotographs
from training.data.flickr8k import Flickr8k
from training.data.held_out import excluded_photographs
from training.data.tokenizer import tokenize
from training.errors import DataError

COCO_POOL, FLICKR30K = "coco_captions_pool.jsonl.gz", "flickr30k_multi30k_en.txt.gz"
SUNSPOT = "sunspot_sentences.txt.gz"


def read_pool(data: Path) -> list[str]:
    """Read all captions, each once, without those of measured photographs and of near duplicates of them.

    Args:
        data: folder of the data sets.

    Raises:
        DataError: a file is missing or malformed.
    """
    measured = CocoPhotographs(data / "coco_photographs")
    numbers = {_number(image) for image in (*measured.split("dev"), *excluded_photographs("coco_photographs"))}
    numbers |= {_number(image) for image in excluded_photographs(COCO)}
    texts = [text for image in measured.split("dev") for text in measured.captions[image]]
    flickr8k = Flickr8k(data / "flickr8k")
    for image in (*flickr8k.split("dev"), *flickr8k.split("test"), *excluded_photographs("flickr8k")):
        texts += flickr8k.captions.get(image, ())
    # Photographs of `rooms`, some of which are its dev split.
    numbers |= {_number(path.name) for path in (data / COCO / "images").glob("*.jpg")}
    for path in sorted((data / EVALUATION_ONLY).glob("captions_*.json")):
        benchmark = read_captions(path).captions
        numbers |= {int(image) for image in benchmark}
        texts += [text for captions in benchmark.values() for text in captions]
    excluded = {tuple(tokenize(text)) for text in texts}
    found: dict[tuple[str, ...], str] = {}
    for number, text in _captions(data):
        words = tuple(tokenize(text))
        if number not in numbers and words not in excluded:
            found.setdefault(words, " ".join(text.split()))
    return list(found.values())


def read_position_sentences(data: Path) -> list[str]:
    """Read people's sentences about where things in rooms are.

    Raises:
        DataError: the file is missing or malformed.
    """
    return list(_lines(data / "caption_texts" / SUNSPOT))


def _captions(data: Path) -> Iterator[tuple[int | None, str]]:
    """Number of the COCO photograph, None for Flickr30k, and the caption."""
    for entry in _objects(data / "caption_texts" / COCO_POOL):
        for text in entry["sentences"]:
            yield entry["coco_id"], text
    for image, texts in read_captions(data / COCO / "captions_val2017.json").captions.items():
        for text in texts:
            yield int(image), text
    for text in _lines(data / "caption_texts" / FLICKR30K):
        yield None, text


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_lines(path), 1):
        try:
            entry = json.loads(line)
            if not isinstance(entry["coco_id"], int) or not isinstance(entry["sentences"], list):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}, line {number}: expected an object with coco_id and sentences") from None
        yield entry


def _lines(path: Path) -> Iterable[str]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            return [line.strip() for line in stream if line.strip()]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None


def _number(file: str) -> int:
    """Return COCO's number of a photograph: 9 for ``COCO_train2014_000000000009.jpg``."""
    return int(Path(file).stem.rpartition("_")[2])
