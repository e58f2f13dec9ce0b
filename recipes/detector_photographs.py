"""Tell which measured photographs the detector of the bundles was trained on.

    python -m recipes.detector_photographs -o runs/unseen_by_detector.txt

YOLOX-nano learned from COCO train2017: all photographs of COCO 2014 except the 5,000 of val2017.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from smart_caption_ros.files import write_text_atomically
from training.command_line import DataFolderOption, run_command
from training.data.coco import read_captions
from training.data.coco_photographs import CocoPhotographs
from training.errors import DataError


def unseen_by_detector(data: Path) -> tuple[list[str], int]:
    """List the dev photographs of ``coco_photographs`` outside train2017, and count all of them.

    Raises:
        DataError: a file is missing or malformed.
    """
    val2017 = read_captions(data / "coco_val2017_captions" / "captions_val2017.json").file_names
    images = CocoPhotographs(data / "coco_photographs").split("dev")
    # COCO_val2014_000000000143.jpg is the photograph 143 of every year.
    return [image for image in images if str(int(Path(image).stem.rpartition("_")[2])) in val2017], len(images)


def detector_photographs(
    data: DataFolderOption,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="TXT", help="List for training.evaluate --only.", show_default=False),
    ],
) -> None:
    """Write the dev photographs of coco_photographs that the detector was not trained on."""
    unseen, count = unseen_by_detector(data)
    write_text_atomically(output, "".join(f"{image}\n" for image in unseen))
    print(f"{len(unseen)} of {count} dev photographs are outside COCO train2017, in {output}")


def main() -> int:
    """Run the command and return its exit status."""
    return run_command(detector_photographs, "python -m recipes.detector_photographs", (DataError,))


if __name__ == "__main__":
    sys.exit(main())
