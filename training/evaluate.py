"""Score captioners side by side: bundles on a data set, or result files against the human captions."""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from tqdm import tqdm

from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.captioning.bundle import write_manifest
from smart_caption_ros.files import write_text_atomically
from training.arguments import positive
from training.data.coco import read_captions, read_objects, read_results
from training.data.flickr8k import Flickr8k
from training.data.karpathy import Karpathy
from training.data.photographs import read_photograph
from training.errors import DataError
from training.evaluation.metrics.bootstrap import Bootstrap
from training.evaluation.metrics.chair import Synonyms
from training.evaluation.metrics.scoring import ChairData, Evaluation, score_models
from training.evaluation.report import as_document, as_table
from training.paths import data_folder

BATCH = 16
EXAMPLES = """examples:
  python -m training.evaluate --bundle B [B2 ...] --dataset flickr8k --split test --json out.json
  python -m training.evaluate --checkpoint runs/R/best.safetensors --karpathy dataset_coco.json --split test
  python -m training.evaluate --captions results.json [more.json ...] --references captions_val2017.json
  python -m training.evaluate --bundle B --references captions_val2017.json --images val2017/ --instances instances_val2017.json
"""  # noqa: E501


class UsageError(Exception):
    """The options do not go together."""


@dataclass(frozen=True)
class Task:
    """What is to be captioned, and what people said of it."""

    name: str
    references: Mapping[str, Sequence[str]]
    read_image: Callable[[str], np.ndarray] | None
    """(H, W, 3) uint8 BGR of an image; None where there are captions alone."""
    frequency_captions: Sequence[Sequence[str]] | None
    """Captions of a corpus for CIDEr-D's document frequencies; None for the references that are scored."""
    frequencies_from: str


@dataclass(frozen=True)
class Model:
    """Captions, where they are from, and the captioner that said them."""

    source: str
    captions: dict[str, str]
    captioner: Captioner | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def main() -> int:
    arguments = _parser().parse_args()
    try:
        if arguments.json and not arguments.json.parent.is_dir():
            raise DataError(f"{arguments.json} cannot be written: no such folder")
        task = _task(arguments)
        chair_data = _chair_data(arguments)
        models = _models(arguments, task)
        return _evaluate(arguments, task, models, chair_data)
    except UsageError as error:
        print(f"error: {error}; --help shows the options", file=sys.stderr)
        return 2
    except (BundleError, DataError, EngineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.evaluate", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    what = parser.add_argument_group("what to score (default: the bundle that ships)")
    what.add_argument("--bundle", type=Path, nargs="+", default=[], help="bundle folders")
    what.add_argument("--engine", default="auto", help="of the bundles (default: the fastest that works here)")
    what.add_argument("--checkpoint", type=Path, nargs="+", default=[], help="best.safetensors of runs, run by torch")
    what.add_argument("--captions", type=Path, nargs="+", default=[], help="COCO result files")
    against = parser.add_argument_group("against what")
    against.add_argument("--dataset", choices=("flickr8k",), help="default without --karpathy and --references")
    against.add_argument(
        "--split", help="train, dev (default) or test; of Karpathy's: train, restval, val (default), test"
    )
    against.add_argument("--karpathy", type=Path, help="COCO by Karpathy's splits, dataset_coco.json, as the data set")
    against.add_argument("--references", type=Path, help="COCO caption annotations, in place of a data set")
    against.add_argument("--images", type=Path, help="folder of their images, to run bundles on")
    against.add_argument("--instances", type=Path, nargs="+", default=[], help="COCO instances, for CHAIR")
    against.add_argument("--chair-synonyms", type=Path, help="default: lexicon/chair_synonyms.txt of the data folder")
    against.add_argument(
        "--document-frequencies", type=Path,
        help="COCO caption annotations that CIDEr-D counts in (default: the train split, else the references)",
    )  # fmt: skip
    statistics = parser.add_argument_group("statistics and output")
    statistics.add_argument("--resamples", type=positive, default=1000, help="of the bootstrap (default: 1000)")
    statistics.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: 0)")
    statistics.add_argument("--json", type=Path, help="write scores, intervals, captions and per-image scores here")
    statistics.add_argument("--record", action="store_true", help="write the scores into the bundles' manifests")
    return parser


# --- the parts of a run ----------------------------------------------------------------------------------


def _task(arguments: argparse.Namespace) -> Task:
    if arguments.references and (arguments.dataset or arguments.karpathy or arguments.split):
        raise UsageError("give --references or a data set and its split, not both")
    if arguments.karpathy and arguments.dataset:
        raise UsageError("give --karpathy or --dataset, not both")
    if not arguments.references and not arguments.karpathy:
        if arguments.images:
            raise UsageError("--images goes with --references or --karpathy")
        task = _flickr8k_task(arguments.split or "dev")
    else:
        if arguments.images is None and (arguments.bundle or not (arguments.captions or arguments.checkpoint)):
            raise UsageError("a bundle needs --images, the folder of the images that the captions are of")
        task = _coco_task(arguments)
    if not task.references:
        raise DataError(f"{arguments.references or arguments.karpathy}: no caption in {task.name}")
    if arguments.document_frequencies is None:
        return task
    counted = list(read_captions(arguments.document_frequencies).captions.values())
    if not counted:
        raise DataError(f"{arguments.document_frequencies}: no caption in it")
    return replace(task, frequency_captions=counted, frequencies_from=arguments.document_frequencies.name)


def _flickr8k_task(split: str) -> Task:
    dataset = Flickr8k(data_folder() / "flickr8k")
    return Task(
        name=f"flickr8k_{split}",
        references={image: dataset.captions[image] for image in dataset.split(split)},
        read_image=lambda image: dataset.read_images([image])[0],
        frequency_captions=[dataset.captions[image] for image in dataset.split("train")],
        frequencies_from="flickr8k train",
    )


def _coco_task(arguments: argparse.Namespace) -> Task:
    if arguments.karpathy:
        karpathy, split = Karpathy.load(arguments.karpathy), arguments.split or "val"
        return Task(
            name=f"karpathy_{split}",
            references={image: karpathy.captions[image] for image in karpathy.split(split)},
            read_image=_image_reader(arguments.images, karpathy.files),
            frequency_captions=[karpathy.captions[image] for image in karpathy.split("train")] or None,
            frequencies_from="karpathy train" if karpathy.split("train") else "the references",
        )
    annotations = read_captions(arguments.references)
    return Task(
        name=arguments.references.stem,
        references=annotations.captions,
        read_image=_image_reader(arguments.images, annotations.file_names),
        frequency_captions=None,
        frequencies_from="the references",
    )


def _image_reader(folder: Path | None, files: Mapping[str, str]) -> Callable[[str], np.ndarray] | None:
    if folder is None:
        return None

    def read_image(image: str) -> np.ndarray:
        if image not in files:
            raise DataError(f"image {image} has captions but no file_name")
        return read_photograph(folder / files[image], image)

    return read_image


def _chair_data(arguments: argparse.Namespace) -> ChairData | None:
    if not arguments.instances:
        if arguments.chair_synonyms:
            raise UsageError("--chair-synonyms goes with --instances")
        return None
    synonyms = Synonyms.load(arguments.chair_synonyms or data_folder() / "lexicon" / "chair_synonyms.txt")
    objects = read_objects(arguments.instances)
    if unknown := {name for names in objects.values() for name in names} - synonyms.class_of.keys():
        raise DataError(f"the synonym list lacks the classes {', '.join(sorted(unknown))} of the instances")
    return ChairData(objects, synonyms)


def _models(arguments: argparse.Namespace, task: Task) -> dict[str, Model]:
    """Models by a name of their own each, files first: they are refused before any bundle runs."""
    found = [(path.stem, Model(str(path), read_results(path))) for path in arguments.captions]
    bundles = arguments.bundle or ([] if arguments.captions or arguments.checkpoint else [None])
    if arguments.record and not bundles:
        raise UsageError("--record goes with a bundle")
    captioners = [Captioner.from_bundle(path, engine=arguments.engine) for path in bundles]
    for captioner in captioners:
        facts = {"engine": captioner.engine, "beam_size": captioner.bundle.beam_size}
        captions = caption_images(captioner, task)
        found.append((captioner.model, Model(str(captioner.bundle.path), captions, captioner, facts)))
    found += [_checkpoint_model(path, task) for path in arguments.checkpoint]
    names = [name for name, _ in found]
    return {
        (name if names.count(name) == 1 else f"{name} {place}"): model for place, (name, model) in enumerate(found, 1)
    }


def _checkpoint_model(path: Path, task: Task) -> tuple[str, Model]:
    from training.checkpoint import CheckpointError  # torch, which bundles and result files do without
    from training.engine.checkpoint_captions import CheckpointCaptioner

    try:
        checkpoint = CheckpointCaptioner(path)
    except CheckpointError as error:
        raise DataError(str(error)) from None
    captions = checkpoint.caption(list(task.references), task.read_image, data_folder())
    facts = {"engine": "torch", "beam_size": checkpoint.experiment.evaluation.beam_size}
    return checkpoint.name, Model(str(path), captions, facts=facts)


def caption_images(captioner: Captioner, task: Task) -> dict[str, str]:
    """What a captioner says of each image of a task, as the robot would."""
    assert task.read_image is not None
    captions: dict[str, str] = {}
    batches = math.ceil(len(task.references) / BATCH)
    for batch in tqdm(_batches(task.references), total=batches, desc=captioner.model, unit="batch"):
        frames = [task.read_image(image) for image in batch]
        captions.update(zip(batch, captioner.caption_batch(frames), strict=True))
    return captions


def _batches(images: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(images)
    while batch := list(islice(remaining, BATCH)):
        yield batch


def _evaluate(
    arguments: argparse.Namespace, task: Task, models: Mapping[str, Model], chair_data: ChairData | None
) -> int:
    images = [image for image in task.references if all(image in model.captions for model in models.values())]
    if not images:
        raise DataError(f"no image has a caption of {' and '.join(models)} and references in {task.name}")
    if chair_data and (lacking := [image for image in images if image not in chair_data.objects]):
        raise DataError(
            f"{len(lacking)} of {len(images)} images are not in {', '.join(map(str, arguments.instances))}, "
            f"for example {lacking[0]}"
        )
    captions = {name: {image: model.captions[image] for image in images} for name, model in models.items()}
    with Console(stderr=True).status("scoring"):  # says nothing where stderr is no terminal
        evaluation = score_models(
            captions, {image: task.references[image] for image in images}, task.frequency_captions, chair_data
        )
    if chair_data is None:
        why = "needs annotated objects; give COCO instances of the images with --instances"
        evaluation.unavailable.update(chair_i=why, chair_s=why)
    bootstrap = Bootstrap(len(images), arguments.resamples, seed=arguments.seed)
    left_out = _left_out(task, models, images)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(as_table(evaluation, bootstrap, f"{task.name}, {len(images)} images"))
    print(f"CIDEr-D counts documents in {task.frequencies_from}")
    for sentence in left_out:
        print(f"warning: {sentence}", file=sys.stderr)
    document: dict[str, Any] = {
        "dataset": task.name,
        "document_frequencies": task.frequencies_from,
        "left_out": left_out,
        **as_document(evaluation, bootstrap, captions),
    }
    sections: dict[str, dict[str, Any]] = document["models"]
    for name, model in models.items():
        sections[name].update(source=model.source, **model.facts)
    if arguments.json:
        try:
            write_text_atomically(arguments.json, json.dumps(document, indent=1) + "\n")
        except OSError as error:
            raise DataError(f"{arguments.json} cannot be written: {error.strerror}") from None
    if arguments.record:
        for name, model in models.items():
            if model.captioner:
                record(model.captioner, task.name, name, evaluation)
    return 0


def _left_out(task: Task, models: Mapping[str, Model], images: Sequence[str]) -> list[str]:
    """What was not scored, one sentence each."""
    sentences = []
    for name, model in models.items():
        if extra := len(model.captions.keys() - task.references.keys()):
            sentences.append(f"{extra} of {len(model.captions)} captions of {name} have no references")
        if lacking := len(task.references.keys() - model.captions.keys()):
            sentences.append(f"{lacking} of {len(task.references)} images with references have no caption of {name}")
    if sentences:
        sentences.append(f"scored on the {len(images)} images that have both")
    return sentences


def record(captioner: Captioner, key: str, name: str, evaluation: Evaluation) -> None:
    """Put a model's scores into its bundle's manifest, where ``smart-caption bundle inspect`` shows them."""
    manifest = dict(captioner.bundle.manifest)
    facts = {
        "images": len(evaluation.images), "beam_size": captioner.bundle.beam_size,
        "tokeniser": evaluation.tokeniser, "engine": captioner.engine, "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip
    values = {
        metric.name: round(metric.value, 4)
        for metric in evaluation.models[name].metrics.values()
        if math.isfinite(metric.value)
    }
    manifest["scores"] = {**manifest.get("scores", {}), key: {**values, **facts}}
    write_manifest(captioner.bundle.path, manifest)


if __name__ == "__main__":
    sys.exit(main())
