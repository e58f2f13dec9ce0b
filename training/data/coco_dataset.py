"""COCO as a data set: photographs in folders, captions and splits of Karpathy's file or of COCO's files."""

from dataclasses import dataclass, field
from pathlib import Path

from training.data.caption_dataset import SPLITS, CaptionDataset
from training.data.coco import Karpathy, read_captions
from training.data.photographs import PhotographFiles
from training.errors import DataError

PROVENANCE = {
    "name": "COCO captions (Lin et al. 2014, Chen et al. 2015)",
    "terms": "annotations CC BY 4.0; photographs by Flickr's terms of use",
}
_KARPATHYS_NAMES = {"train": "train", "dev": "val", "test": "test"}


@dataclass(frozen=True)
class Coco:
    """COCO by its paths, below the data folder or absolute; either ``karpathy`` or ``captions`` is given."""

    karpathy: str = ""
    """Karpathy's ``dataset_coco.json``: ``train`` includes ``restval``, ``val`` is dev."""
    captions: dict[str, str] = field(default_factory=dict)
    """A ``captions_*.json`` of COCO for each of :data:`training.data.caption_dataset.SPLITS`; ``train`` is required."""
    photographs: str = "coco"
    """Folder that contains ``train2014``, ``val2014`` and so on."""
    name: str = ""
    """Name, in the manifests of models, of photographs and captions that are not COCO's; with ``terms``."""
    terms: str = ""
    """Terms of use of photographs and captions that are not COCO's."""

    def __post_init__(self) -> None:
        if bool(self.karpathy) == bool(self.captions):
            raise ValueError("give karpathy (dataset_coco.json) or captions (a file for each split), one of the two")
        for split, path in self.captions.items():
            if split not in SPLITS or not isinstance(path, str):
                raise ValueError(f"captions: {split}: expected a file for one of {', '.join(SPLITS)}, not {path!r}")
        if self.captions and "train" not in self.captions:
            raise ValueError("captions: a file for train is needed")
        if bool(self.name) != bool(self.terms):
            raise ValueError("give name and terms together, those of photographs and captions that are not COCO's")

    def open(self, data: Path) -> CaptionDataset:
        photographs = data / self.photographs
        if self.karpathy:
            karpathy = Karpathy.load(data / self.karpathy)
            return CaptionDataset(
                karpathy.captions,
                {split: karpathy.split(theirs) for split, theirs in _KARPATHYS_NAMES.items()},
                PhotographFiles({image: photographs / name for image, name in karpathy.files.items()}),
            )
        captions: dict[str, list[str]] = {}
        paths: dict[str, Path] = {}
        splits: dict[str, list[str]] = {}
        for split, name in self.captions.items():
            path = data / name
            annotations = read_captions(path)
            if twice := captions.keys() & annotations.captions.keys():
                raise DataError(f"{path}, image {min(twice)}: it is in another split as well")
            if nameless := annotations.captions.keys() - annotations.file_names.keys():
                raise DataError(f"{path}, image {min(nameless)}: it has captions but no file_name")
            # captions_val2017.json describes the photographs of val2017/.
            folder = photographs / path.stem.removeprefix("captions_")
            folder = folder if folder.is_dir() else photographs
            captions.update(annotations.captions)
            paths.update({image: folder / annotations.file_names[image] for image in annotations.captions})
            splits[split] = list(annotations.captions)
        return CaptionDataset(captions, splits, PhotographFiles(paths))

    @property
    def provenance(self) -> list[dict[str, str]]:
        return [{"name": self.name, "terms": self.terms} if self.name else PROVENANCE]
