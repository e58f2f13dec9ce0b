"""Select the indoor photographs of COCO instance files.

    python -m benchmarks.indoor_instances instances_val2017.json ... -o FOLDER

The result is for measuring noun coverage in a robot's environment: ``smart-caption coverage coco FOLDER/*.json``.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from smart_caption_ros.files import write_text_atomically
from training.command_line import run_command
from training.data.json_files import read_json
from training.errors import DataError

INDOOR = frozenset({"furniture", "appliance", "electronic", "kitchen", "indoor"})
OUTDOOR = frozenset({"vehicle", "outdoor", "animal", "sports"})
"""Supercategories of COCO."""


def select_indoor(document: dict[str, Any]) -> dict[str, Any]:
    """Return an instance file's content with its indoor photographs and their annotations alone.

    Raises:
        KeyError, TypeError: the document is not the content of an instance file with supercategories.
    """
    supercategory = {category["id"]: category["supercategory"] for category in document["categories"]}
    supercategories: dict[int, set[str]] = {}
    for annotation in document["annotations"]:
        supercategories.setdefault(annotation["image_id"], set()).add(supercategory[annotation["category_id"]])
    kept = {image for image, found in supercategories.items() if found & INDOOR and not found & OUTDOOR}
    return {
        **document,
        "images": [image for image in document["images"] if image["id"] in kept],
        "annotations": [annotation for annotation in document["annotations"] if annotation["image_id"] in kept],
    }


def indoor_instances(
    instances: Annotated[list[Path], typer.Argument(help="COCO's instances_*.json.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder to write the selections into.")
    ],
) -> None:
    """Select the indoor photographs of COCO instance files.

    A photograph counts as indoor if it has an object of COCO's supercategories furniture, appliance, electronic,
    kitchen or indoor and none of vehicle, outdoor, animal or sports.
    """
    output.mkdir(parents=True, exist_ok=True)
    for path in instances:
        try:
            document = select_indoor(read_json(path))
        except (KeyError, TypeError):
            raise DataError(f"{path}: no instance file with supercategories") from None
        write_text_atomically(output / path.name, json.dumps(document))
        print(f"{output / path.name}: {len(document['images'])} photographs")


def main() -> int:
    """Run the command and return its exit status."""
    return run_command(indoor_instances, "python -m benchmarks.indoor_instances", errors=(DataError,))


if __name__ == "__main__":
    sys.exit(main())
