"""COCO captions with Karpathy's splits: ``dataset_coco.json`` (Karpathy and Fei-Fei 2015)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.data.json_files import read_json
from training.errors import DataError

KARPATHY_SPLITS = ("train", "restval", "val", "test")


@dataclass(frozen=True)
class Karpathy:
    """Captions and splits by COCO's image ids, as strings."""

    captions: dict[str, list[str]]
    """Captions of every image, as written."""
    files: dict[str, str]
    """File of each image, below the folder of COCO's photographs, e.g. ``val2014/COCO_val2014_000000391895.jpg``."""
    splits: dict[str, list[str]]
    """Image ids of ``train``, ``restval``, ``val`` and ``test``, in file order."""

    @classmethod
    def load(cls, path: Path) -> "Karpathy":
        """Read and check the file.

        Raises:
            DataError: naming the file, the image and the reason.
        """
        document = read_json(path)
        if not isinstance(document, dict) or not isinstance(document.get("images"), list):
            raise DataError(f"{path}: expected an object with a list of images, as in dataset_coco.json")
        captions: dict[str, list[str]] = {}
        files: dict[str, str] = {}
        splits: dict[str, list[str]] = {split: [] for split in KARPATHY_SPLITS}
        for place, image in enumerate(document["images"]):
            if not isinstance(image, dict) or not isinstance(image.get("cocoid"), int):
                raise DataError(f"{path}, entry {place}: no cocoid")
            name = str(image["cocoid"])
            where = f"{path}, image {name}"
            if name in captions:
                raise DataError(f"{where}: it is in the file twice")
            if image.get("split") not in KARPATHY_SPLITS:
                raise DataError(f"{where}: split {image.get('split')!r} is none of {', '.join(KARPATHY_SPLITS)}")
            if not isinstance(image.get("filename"), str):
                raise DataError(f"{where}: no filename")
            captions[name] = _sentences(where, image.get("sentences"))
            files[name] = "/".join(filter(None, (image.get("filepath"), image["filename"])))
            splits[image["split"]].append(name)
        return cls(captions, files, splits)

    def split(self, name: str) -> list[str]:
        """List the image ids of a split, one of :data:`KARPATHY_SPLITS`.

        ``train`` includes ``restval``, as is usual: 113,287 images instead of 82,783.

        Raises:
            DataError: unknown split.
        """
        if name not in KARPATHY_SPLITS:
            raise DataError(f"unknown split {name!r}; Karpathy's are {', '.join(KARPATHY_SPLITS)}")
        return [*self.splits[name], *(self.splits["restval"] if name == "train" else [])]


def _sentences(where: str, sentences: Any) -> list[str]:
    if not isinstance(sentences, list) or not sentences:
        raise DataError(f"{where}: no captions")
    captions = []
    for place, sentence in enumerate(sentences):
        raw = sentence.get("raw") if isinstance(sentence, dict) else None
        if not isinstance(raw, str) or not raw.strip():
            raise DataError(f"{where}, sentence {place}: caption is missing or empty")
        captions.append(raw.strip())
    return captions
