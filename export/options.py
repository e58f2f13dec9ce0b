"""Options of an export."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Precision: TypeAlias = Literal["float32", "float16", "int8"]
Storage: TypeAlias = Literal["float16", "float32", "int8"]


@dataclass(frozen=True)
class ExportOptions:
    """What is exported, and how."""

    checkpoint: Path
    bundle: Path
    """Folder to write."""
    name: str | None = None
    """Name of the bundle; None: the experiment's."""
    precision: Precision = "float32"
    storage: Storage = "float16"
    beam_size: int | None = None
    """Beams of the search; None: the checkpoint's."""
    vision_from: Path | None = None
    """Bundle whose vision graph computed the features that the captioner was trained on."""
    max_words: int | None = None
    """Longest caption, end token included; None: the checkpoint's."""
    repeat_penalty: float | None = None
    """Penalty of repeated content words in the search, a natural logarithm; None: the checkpoint's."""
    end_penalty: float | None = None
    """Penalty of the end token in the search, a natural logarithm; None: the checkpoint's."""
    image_size: int | None = None
    """Width and height of the frames that the vision graph takes, in pixels; None: the checkpoint's."""
    detector: bool = True
    """Whether the vision graph has the backbone's detector, if it has one."""
    detector_score: float = 0.3
    """Lowest score of an object that is found, from 0 to 1."""
    guided: bool = True
    """Whether the captioner's search has the inputs by which objects guide it."""
    static: bool = True
    """Whether the bundle has the static form. With the precision int8 it has the same weights but computes in float32;
    it is left out where the vision graph computes in 8 bits."""
    replace: bool = False
    """Whether an existing bundle is replaced."""
    check_images: int = 100
    """Photographs to compare with torch."""
    calibration: Path | None = None
    """Folder of photographs to check the bundle on; None: the run's dev split, or frames that ship."""

    @property
    def rounded(self) -> bool:
        """Whether weights are rounded to 16 bits."""
        return self.storage != "float32" or self.precision == "float16"

    @property
    def int8_storage(self) -> bool:
        """Whether the backbone's weights are rounded to 8 bits."""
        return self.storage == "int8" and self.precision != "float16"
