"""The photographs of COCO instance files that were taken indoors, as instance files of their own.

    python -m benchmarks.indoor_instances instances_val2017.json ... -o FOLDER

For noun coverage in a robot's world: ``smart-caption coverage coco FOLDER/*.json --images ...``. A photograph counts as
taken indoors if something in it is of COCO's supercategories furniture, appliance, electronic, kitchen or indoor, and
nothing of vehicle, outdoor, animal or sports.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from smart_caption_ros.files import write_text_atomically
from training.data.json_files import read_json
from training.errors import DataError

INDOORS = frozenset({"furniture", "appliance", "electronic", "kitchen", "indoor"})
OUTDOORS = frozenset({"vehicle", "outdoor", "animal", "sports"})

main = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def indoors(document: dict[str, Any]) -> dict[str, Any]:
    """The same document with the photographs that were taken indoors, and what is annotated in them.

    Raises:
        KeyError: it is no instance file with supercategories.
    """
    supercategory = {category["id"]: category["supercategory"] for category in document["categories"]}
    seen: dict[int, set[str]] = {}
    for annotation in document["annotations"]:
        seen.setdefault(annotation["image_id"], set()).add(supercategory[annotation["category_id"]])
    kept = {image for image, kinds in seen.items() if kinds & INDOORS and not kinds & OUTDOORS}
    return {
        **document,
        "images": [image for image in document["images"] if image["id"] in kept],
        "annotations": [annotation for annotation in document["annotations"] if annotation["image_id"] in kept],
    }


@main.command(help=__doc__)
def run(
    instances: Annotated[list[Path], typer.Argument(help="instances_*.json")],
    output: Annotated[Path, typer.Option("--output", "-o", help="folder, made if need be")],
) -> None:
    """Write the files."""
    output.mkdir(parents=True, exist_ok=True)
    for path in instances:
        try:
            document = indoors(read_json(path))
        except (DataError, KeyError, TypeError) as error:
            reason = error if isinstance(error, DataError) else f"{path}: no instance file with supercategories"
            typer.echo(f"error: {reason}", err=True)
            raise typer.Exit(1) from None
        write_text_atomically(output / path.name, json.dumps(document))
        typer.echo(f"{output / path.name}: {len(document['images'])} photographs")


if __name__ == "__main__":
    main()
