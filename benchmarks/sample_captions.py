"""Draw captions by chance from results of ``python -m training.evaluate``, for a model card.

    python -m benchmarks.sample_captions flickr8k.json coco_photographs.json --count 10 --seed 0

prints a Markdown table: for each file the first model's captions of as many images, in the order of the file.
"""

import random
import sys
from pathlib import Path
from typing import Annotated

import typer

from training.command_line import run_command
from training.data.json_files import read_json
from training.errors import DataError


def sample_captions(
    results: Annotated[list[Path], typer.Argument(help="JSON files of python -m training.evaluate.")],
    count: Annotated[int, typer.Option(min=1, help="Images of each file.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the choice.")] = 0,
) -> None:
    """Draw captions by chance from results of python -m training.evaluate."""
    print("| from | image | caption |\n|---|---|---|")
    for path in results:
        captions = next(iter(captions_of_models(path).values()))
        drawn = set(random.Random(seed).sample(sorted(captions), min(count, len(captions))))
        for image in captions:
            if image in drawn:
                print(f"| {path.stem} | {image} | {captions[image]} |")


def captions_of_models(path: Path) -> dict[str, dict[str, str]]:
    """Read the captions of the models of a file, by model and image id.

    Raises:
        DataError: the file is missing, malformed or no result.
    """
    try:
        models = {
            name: {image: str(found["caption"]) for image, found in model["per_image"].items()}
            for name, model in read_json(path)["models"].items()
        }
    except (AttributeError, KeyError, TypeError):
        models = {}
    if not models:
        raise DataError(f"{path}: no result of python -m training.evaluate with the captions of images")
    return models


def main() -> int:
    return run_command(sample_captions, "python -m benchmarks.sample_captions", (DataError,))


if __name__ == "__main__":
    sys.exit(main())
