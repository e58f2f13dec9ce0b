"""A data set in the layout of ``coco_photographs``: ``captions.jsonl`` and ``images_256.zip``."""

import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2

from smart_caption_ros.files import replaced_atomically, write_text_atomically
from smart_caption_ros.imaging import ImageError, decode_image_bytes, resize_image
from training.data.coco_photographs import CAPTIONS, IMAGES, PHOTOGRAPH_SIZE
from training.data.tokenizer import tokenize
from training.errors import DataError

_QUALITY = 95
"""Of the JPEG files that are written."""


@dataclass(frozen=True)
class CaptionedImage:
    """A photograph for training with its captions."""

    image: str
    """File name in the archive."""
    sentences: Sequence[str]
    indoor: bool
    objects: Sequence[str] = ()
    """Class names of COCO."""


def with_few_uses(images: Iterable[CaptionedImage], max_uses: int) -> list[CaptionedImage]:
    """Drop sentences that ``max_uses`` images before have, compared by their words, and images without any left."""
    uses: Counter[tuple[str, ...]] = Counter()
    kept = []
    for image in images:
        sentences = [sentence for sentence in image.sentences if uses[tuple(tokenize(sentence))] < max_uses]
        uses.update({tuple(tokenize(sentence)) for sentence in sentences})
        if sentences:
            kept.append(CaptionedImage(image.image, sentences, image.indoor, image.objects))
    return kept


def write_captions(folder: Path, images: Iterable[CaptionedImage]) -> None:
    """Write ``captions.jsonl``, all of it in the train part."""
    lines = [
        json.dumps(
            {"image": image.image, "part": "train", "indoor": image.indoor, "sentences": list(image.sentences),
             "objects": list(image.objects)}
        )
        for image in images
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    write_text_atomically(folder / CAPTIONS, "".join(f"{line}\n" for line in lines))


def link_archive(folder: Path, archive: Path) -> None:
    """Make ``images_256.zip`` a link to an archive, so that photographs are not copied."""
    folder.mkdir(parents=True, exist_ok=True)
    with replaced_atomically(folder / IMAGES) as unfinished:
        unfinished.symlink_to(archive.resolve())


def write_archive(folder: Path, photographs: Iterable[tuple[str, bytes]]) -> None:
    """Write ``images_256.zip`` with photographs resized to 256 x 256 without keeping their aspect ratio.

    Args:
        folder: folder of the data set.
        photographs: names and encoded photographs.

    Raises:
        DataError: a photograph is not an image.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with replaced_atomically(folder / IMAGES) as unfinished, zipfile.ZipFile(unfinished, "w") as archive:
        for name, encoded in photographs:
            try:
                frame = resize_image(decode_image_bytes(encoded), (PHOTOGRAPH_SIZE, PHOTOGRAPH_SIZE))
            except ImageError as error:
                raise DataError(f"{name}: {error}") from None
            _, jpeg = cv2.imencode(".jpg", frame, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
            archive.writestr(zipfile.ZipInfo(name), jpeg.tobytes())  # without the time: equal data, equal files
