"""Cache of the photographs' contents, one file per photograph, so that a run that was stopped can continue."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from recipes.compact_json import json_bytes
from recipes.rooms.photographs import Photograph, RoomsData, decode_photograph
from recipes.teachers.image_content import ContentTeacher, ImageContent, content_from_json
from smart_caption_ros.files import write_bytes_atomically
from training.data.json_files import read_json
from training.errors import DataError

_FINGERPRINT = "teachers.json"


def find_contents(
    teacher: ContentTeacher, data: RoomsData, photographs: Sequence[Photograph], cache: Path
) -> dict[str, ImageContent]:
    """Read the contents of photographs from the cache, and find those that it lacks.

    Args:
        teacher: finds the contents.
        data: reads the photographs.
        photographs: the photographs.
        cache: folder of the files; contents by other teachers are deleted from it.

    Returns:
        Contents by the photographs' ids.

    Raises:
        DataError: a photograph or a file of the cache cannot be read.
        OSError: a file cannot be written.
    """
    fingerprint = cache / _FINGERPRINT
    if not fingerprint.is_file() or read_json(fingerprint) != teacher.fingerprint:
        for old in cache.glob("*/*.json"):
            old.unlink()
        cache.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(fingerprint, json_bytes(teacher.fingerprint))
    missing = [photograph for photograph in photographs if not _file(cache, photograph).is_file()]
    with tqdm(data.encoded(missing), "teachers", len(missing), unit="photograph", mininterval=1) as bar:
        for photograph, encoded in bar:
            content = teacher.find(decode_photograph(photograph, encoded))
            path = _file(cache, photograph)
            path.parent.mkdir(exist_ok=True)
            write_bytes_atomically(path, json_bytes(asdict(content)))
    return {photograph.id: _read(_file(cache, photograph)) for photograph in photographs}


def _file(cache: Path, photograph: Photograph) -> Path:
    return cache / photograph.origin / f"{Path(photograph.file).stem}.json"


def _read(path: Path) -> ImageContent:
    try:
        return content_from_json(read_json(path))
    except (KeyError, TypeError):
        raise DataError(f"{path} is damaged: delete it and start again") from None
