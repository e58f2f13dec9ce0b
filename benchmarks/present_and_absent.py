"""Judge captions by lists of objects that a picture shows and of objects that it does not show.

    python -m training.evaluate --bundle B1 --bundle B2 --images indoor_truth/images_256.zip --json captions.json
    python -m benchmarks.present_and_absent captions.json --labels indoor_truth/labels.jsonl --json FILE

``captions_with_absent`` is the share of captions that name something absent, ``mentions_present`` the share of judged
mentions of what is there, both with 95 % bootstrap intervals over the pictures; ``absent_words`` counts the wrong ones.
A word is judged where the labels decide: it is right if one of the classes that it can name is present, wrong if all of
them are absent ("computer" names a laptop or a monitor). Words are those of ``class_words.txt`` of the package.
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.environment import describe_environment, report
from smart_caption_ros.grounding.class_words import ClassWords
from training.command_line import JsonOption, run_command
from training.data.inflection import singular
from training.data.json_files import read_json, read_json_lines
from training.errors import DataError
from training.evaluation.metrics.bootstrap import Bootstrap
from training.evaluation.metrics.metric import Metric, ratio

CLASSES = {"monitor": "television", "phone": "cell phone"}
"""Labels that have another name in the table of words."""
OTHER_WORDS = {"doorway": "door", "cupboard": "cabinet", "cabinetry": "cabinet"}
"""Words of classes that the table lacks; their names are words, too."""


def present_and_absent(
    captions: Annotated[Path, typer.Argument(help="JSON file of python -m training.evaluate.")],
    labels: Annotated[Path, typer.Option(help="An object a line: image, objects (present) and absent.")],
    output: JsonOption = None,
) -> None:
    """Judge captions by lists of present and absent objects."""
    shown = {str(entry["image"]): (entry["objects"], entry.get("absent", [])) for entry in read_json_lines(labels)}
    models = captions_of_models(captions)
    if unknown := {image for said in models.values() for image in said} - shown.keys():
        raise DataError(f"{labels} has no labels of {len(unknown)} captioned images, for example {min(unknown)}")
    judge = make_judge({name for lists in shown.values() for names in lists for name in names})
    results = {name: summarise(said, shown, judge) for name, said in models.items()}
    report({**describe_environment(seed=0), "labels": labels.parent.name, "models": results}, output)


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


Judge = Callable[[str, set[str], set[str]], tuple[list[str], list[str]]]


def make_judge(names: set[str]) -> Judge:
    """Make a function that lists the words of a caption which name present objects, and those that name absent ones.

    Args:
        names: the labels.
    """
    table = ClassWords.load()
    words: dict[str, set[str]] = {}
    for name in names:
        known = CLASSES.get(name, name)
        for word in (name, *(word for word, classes in table.classes_of.items() if known in classes)):
            words.setdefault(word, set()).add(name)
    for word, name in OTHER_WORDS.items():
        if name in names:
            words.setdefault(word, set()).add(name)

    def judge(caption: str, present: set[str], absent: set[str]) -> tuple[list[str], list[str]]:
        said = [word if word in words else singular(word) for word in caption.split()]
        right = [word for word in said if words.get(word, set()) & present]
        wrong = [word for word in said if word in words and words[word] <= absent]
        return right, wrong

    return judge


def summarise(
    captions: Mapping[str, str], shown: Mapping[str, tuple[list[str], list[str]]], judge: Judge
) -> dict[str, Any]:
    """Compute the figures of one captioner.

    Args:
        captions: by image.
        shown: for each image the present and the absent objects.
    """
    judged = [judge(caption, *map(set, shown[image])) for image, caption in captions.items()]
    right, wrong = (np.array([len(words[side]) for words in judged], float) for side in (0, 1))
    bootstrap, one = Bootstrap(len(judged)), np.ones(len(judged))

    def share(part: np.ndarray, whole: np.ndarray) -> dict[str, float]:
        metric = Metric("", np.stack([part, whole], axis=1), ratio, part)
        interval = bootstrap.interval(metric)
        return {"value": round(metric.value, 4), "low": round(interval.low, 4), "high": round(interval.high, 4)}

    return {
        "captions": len(judged),
        "captions_with_absent": share(np.minimum(wrong, 1), one),
        "judged_mentions": int((right + wrong).sum()),
        "mentions_present": share(right, right + wrong),
        "absent_words": dict(Counter(word for _, words in judged for word in words).most_common()),
    }


def main() -> int:
    return run_command(present_and_absent, "python -m benchmarks.present_and_absent", (DataError,))


if __name__ == "__main__":
    sys.exit(main())
