"""Score captioners side by side: ``python -m training.evaluate``."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.detection.class_names import DetectorError
from smart_caption_ros.files import write_text_atomically
from smart_caption_ros.grounding import guide_words
from smart_caption_ros.grounding.objects_guide import AUTO, GUIDE_CHOICES, OFF, STRENGTH
from training.command_line import DeviceOption, JsonOption, refuse_options, run_command
from training.configs.schema import DataConfig
from training.data.coco import read_objects, read_results, write_results
from training.data.datasets import open_dataset
from training.decoding.constraints import MOST_CONSTRAINTS
from training.engine.checkpoint_captions import BATCH, DatasetCaptioner
from training.engine.distributed import DeviceError, choose_device
from training.engine.experiment import load_run
from training.errors import BackboneError, CheckpointError, ConfigError, DataError
from training.evaluation.comparison import PERSON, Comparison, ModelCaptions, caption_references, human_captions
from training.evaluation.metrics.bootstrap import Bootstrap
from training.evaluation.metrics.scoring import PTB_RULE, TOKENISERS, ChairData
from training.evaluation.references import References
from training.evaluation.similar_images import photograph_features
from training.paths import data_folder

DATASETS = ("flickr8k", "coco_photographs", "looked_at")
"""Data sets that need no options, of :data:`training.data.datasets.DATASETS`."""


_OF_BUNDLES = ("engine", "objects_guide", "guide_strength")
_OF_CHECKPOINTS = ("repeat_penalty", "end_penalty", "image_size", "device", "batch_size")


def evaluate(
    context: typer.Context,
    bundle: Annotated[list[Path], typer.Option(help="Bundle folders (default: the bundle that ships).")] = [],  # noqa: B006
    engine: Annotated[str, typer.Option(help="Engine of the bundles (auto: the fastest that works).")] = "auto",
    objects_guide: Annotated[
        str,
        typer.Option(
            help="How detected objects guide the words of the bundles: off, bias, or auto: bias where a "
            "bundle has a detector and takes a guide."
        ),
    ] = AUTO,
    guide_strength: Annotated[
        float, typer.Option(min=0, help="Bias of the words of an object with score 1, natural logarithm.")
    ] = STRENGTH,
    checkpoint: Annotated[list[Path], typer.Option(help="best.safetensors of runs, run by torch.")] = [],  # noqa: B006
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="Also score the ensemble of the checkpoints: the mean of probabilities.")
    ] = False,
    repeat_penalty: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Natural logarithm that the search of the checkpoints subtracts for a content word that the caption "
            "has already (default: the checkpoint's).",
        ),
    ] = None,
    end_penalty: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Natural logarithm that the search of the checkpoints subtracts from the logit of the end token, for "
            "longer captions (default: the checkpoint's).",
        ),
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option(
            min=32,
            help="Width and height in pixels to which the checkpoints' frames are squashed, a multiple of 32 "
            "(default: the checkpoint's, 224).",
        ),
    ] = None,
    constraints: Annotated[
        Path | None,
        typer.Option(
            metavar="JSON|DETECTOR",
            help="Also score the checkpoints with constrained beam search: captions with words of a JSON file, or of "
            "the objects that a detector finds, an ONNX file or a bundle.",
        ),
    ] = None,
    minimum_constraints: Annotated[
        int, typer.Option(min=1, max=MOST_CONSTRAINTS, help="Constraints of an image that its caption satisfies.")
    ] = 2,
    device: DeviceOption = "auto",
    batch_size: Annotated[int, typer.Option(min=1, help="Images that a checkpoint captions at once.")] = BATCH,
    captions: Annotated[list[Path], typer.Option(help="COCO result files.")] = [],  # noqa: B006
    dataset: Annotated[
        str | None,
        typer.Option(
            help="Data set: flickr8k (the default without --karpathy, --references and --images), coco_photographs, "
            "looked_at, or an experiment file (.yaml), whose data is taken."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="train, dev (default) or test; Karpathy's are train, restval, val (default), test."),
    ] = None,
    karpathy: Annotated[Path | None, typer.Option(help="dataset_coco.json: COCO by Karpathy's splits.")] = None,
    references: Annotated[Path | None, typer.Option(help="COCO caption annotations, instead of a data set.")] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            help="Folder or zip of the images of --karpathy or --references; alone, images without human captions."
        ),
    ] = None,
    image_info: Annotated[
        Path | None,
        typer.Option(help="COCO file with the ids of --images, for test sets whose captions are not public."),
    ] = None,
    write_captions: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for a COCO result file of each model.")
    ] = None,
    only: Annotated[Path | None, typer.Option(help="Text file with the image ids to keep, one a line.")] = None,
    domains: Annotated[
        Path | None,
        typer.Option(help="JSON file with a list of image ids for each domain, to score the domains apart."),
    ] = None,
    human: Annotated[
        bool, typer.Option("--human", help="Add a model that says one human caption of each image, drawn by --seed.")
    ] = False,
    instances: Annotated[
        list[Path], typer.Option(help="COCO instance annotations, for CHAIR (default: those of coco_photographs).")
    ] = [],  # noqa: B006
    chair_synonyms: Annotated[
        Path | None, typer.Option(help="Synonym list (default: lexicon/chair_synonyms.txt of the data folder).")
    ] = None,
    document_frequencies: Annotated[
        Path | None,
        typer.Option(
            help="COCO caption annotations in which CIDEr-D counts (default: the train split, else the references)."
        ),
    ] = None,
    metric_weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Weights of CLIP-S, PAC-S and BERT-S in its folders clip_s, pac_s and bert_s "
            "(default: metrics of the data folder).",
        ),
    ] = None,
    bert_idf: Annotated[
        bool, typer.Option("--bert-idf", help="BERT-S weighs tokens by their inverse document frequency.")
    ] = False,
    tokenizer: Annotated[
        str,
        typer.Option(
            help="ptb: that of the COCO toolkit, for English; words: that of training, whose scores are those of "
            "log.jsonl and TensorBoard; unicode: for captions in any script."
        ),
    ] = PTB_RULE,
    resamples: Annotated[
        int, typer.Option(min=0, help="Resamples of the bootstrap; 0 leaves the intervals out.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap and of --human.")] = 0,
    json_path: JsonOption = None,
    record: Annotated[bool, typer.Option("--record", help="Write the scores into the bundles' manifests.")] = False,
) -> None:
    """Score captioners side by side: bundles, checkpoints or result files against human captions.

    \b
    Examples:
      python -m training.evaluate --bundle B [B2 ...] --dataset flickr8k --split test --json out.json
      python -m training.evaluate --checkpoint runs/R/best.safetensors --karpathy dataset_coco.json --split test
      python -m training.evaluate --checkpoint A.safetensors B.safetensors --ensemble
      python -m training.evaluate --captions results.json [more.json ...] --references captions_val2017.json
      python -m training.evaluate --bundle B --references captions_val2017.json --images val2017/ \\
          --instances instances_val2017.json
      python -m training.evaluate --dataset coco_photographs --human
      python -m training.evaluate --bundle B --images frames/
      python -m training.evaluate --bundle B --references nocaps_val_4500_captions.json --images nocaps_val/
      python -m training.evaluate --bundle B --image-info nocaps_test_image_info.json --images nocaps_test/ \\
          --write-captions results/
    """
    bundles: list[Path | None] = [*bundle] or ([] if captions or checkpoint else [None])
    has_human = bool(references or karpathy)
    wrong = {
        "give --references or a data set and its split, not both": references and (dataset or karpathy or split),
        "--ensemble needs two checkpoints or more": ensemble and len(checkpoint) < 2,
        "--constraints is for checkpoints; a bundle's search is in its graph": constraints and not checkpoint,
        "give --karpathy or --dataset, not both": karpathy and dataset,
        f"--dataset: {dataset!r} is none of {', '.join(DATASETS)}": (
            dataset not in (None, *DATASETS) and not str(dataset).endswith(".yaml")
        ),
        f"--tokenizer: {tokenizer!r} is none of {', '.join(TOKENISERS)}": tokenizer not in TOKENISERS,
        "--images goes with --references or --karpathy, or stands alone": images and dataset,
        "a bundle needs --images, the folder of the images that the captions are of": (
            has_human and not images and bundles
        ),
        "--chair-synonyms goes with --instances": chair_synonyms and not (instances or dataset == "coco_photographs"),
        "--image-info goes with --images alone, the folder of its images": image_info and (not images or has_human),
        "--split, --human, --record, --instances and --document-frequencies go with human captions; --images alone has "
        "none": (images and not has_human and (split or human or record or instances or document_frequencies)),
        f"--objects-guide: {objects_guide!r} is none of {', '.join(GUIDE_CHOICES)}": objects_guide not in GUIDE_CHOICES,
        "--record writes the scores of captions as a robot says them: leave out --objects-guide": (
            record and objects_guide != AUTO
        ),
        "--record goes with a bundle": record and not bundles,
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise typer.BadParameter(message)
    for options, others, applies in (
        (_OF_BUNDLES, "bundles", bundles),
        (["guide_strength"], "captions that objects guide", objects_guide != OFF),
        (_OF_CHECKPOINTS, "checkpoints", checkpoint),
        (["minimum_constraints"], "--constraints", constraints),
        (["bert_idf"], "images with human captions", not images or has_human),
    ):
        if not applies:
            refuse_options(context, options, others)
    if json_path and not json_path.parent.is_dir():
        raise DataError(f"{json_path} cannot be written: no such folder")
    if write_captions and not write_captions.is_dir():
        raise DataError(f"{write_captions}: no such folder to write captions to")
    against = _references(references, karpathy, dataset, split, images, image_info)
    against = against.only(only) if only else against
    against = against.with_domains(domains) if domains else against
    against = against.with_frequencies_of(document_frequencies) if document_frequencies else against
    synonyms = chair_synonyms or data_folder() / "lexicon" / "chair_synonyms.txt"
    objects = read_objects(instances) if instances else against.objects
    source = ", ".join(map(str, instances)) or against.name
    chair_data = None if objects is None else ChairData.load(objects, synonyms, source)
    person = [(PERSON, human_captions(against, seed))] if human else []
    features = None
    if against.has_captions and against.read_image:
        features = photograph_features(list(against.captions), against.read_image)
    models = [(path.stem, ModelCaptions(str(path), read_results(path))) for path in captions]
    captioners = [
        guide_words(Captioner.from_bundle(path, engine=engine), objects_guide, guide_strength) for path in bundles
    ]
    models += [(captioner.model, caption_references(captioner, against)) for captioner in captioners]
    for paths in [*([path] for path in checkpoint), *([checkpoint] if ensemble else [])]:
        with_torch = DatasetCaptioner(*paths, device=choose_device(device), batch=batch_size)
        with_torch.trained.change_search(repeat_penalty=repeat_penalty, end_penalty=end_penalty)
        with_torch.trained.set_image_size(image_size)
        models += _caption_with_checkpoint(with_torch, paths, against, constraints, minimum_constraints)
    models += person
    named = _with_unique_names(models)
    if write_captions:
        given = {path.resolve() for path in captions}
        for name, model in named.items():
            file = write_captions / f"{name.replace('/', '_')}.json"
            if file.resolve() not in given:
                write_results(file, model.captions)
    with Console(stderr=True).status("scoring"):  # prints nothing where stderr is not a terminal
        weights = metric_weights or data_folder() / "metrics"
        comparison = Comparison.of(against, named, chair_data, features, weights, idf=bert_idf, rule=tokenizer)
    bootstrap = Bootstrap(len(comparison.evaluation.images), resamples, seed)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(comparison.table(bootstrap))
    if against.has_captions:
        print(f"CIDEr-D counts documents in {against.frequencies_from}")
    for sentence in comparison.left_out:
        print(f"warning: {sentence}", file=sys.stderr)
    if json_path:
        try:
            write_text_atomically(json_path, json.dumps(comparison.document(bootstrap), indent=1) + "\n")
        except OSError as error:
            raise DataError(f"{json_path} cannot be written: {error.strerror}") from None
    if record:
        comparison.record()


def _references(
    references: Path | None,
    karpathy: Path | None,
    dataset: str | None,
    split: str | None,
    images: Path | None,
    image_info: Path | None,
) -> References:
    if references:
        return References.of_coco(references, images)
    if karpathy:
        return References.of_karpathy(karpathy, split or "val", images)
    if images and image_info:
        return References.of_image_info(image_info, images)
    if images:
        return References.of_images(images)
    if dataset and dataset not in DATASETS:
        experiment = load_run(Path(dataset))
        return References.of_dataset(experiment.name, open_dataset(experiment.data, data_folder()), split or "dev")
    name = dataset or DATASETS[0]
    return References.of_dataset(name, open_dataset(DataConfig(dataset=name), data_folder()), split or "dev")


def _caption_with_checkpoint(
    captioner: DatasetCaptioner,
    paths: Sequence[Path],
    references: References,
    constraints: Path | None,
    minimum_constraints: int,
) -> list[tuple[str, ModelCaptions]]:
    """Caption the images with a checkpoint or an ensemble, with constraints once more."""
    trained, images, source = captioner.trained, list(references.captions), ", ".join(map(str, paths))
    facts: dict[str, Any] = {"engine": "torch", "beam_size": trained.search.beam_size}
    facts["end_penalty"] = trained.search.end_penalty
    if trained.backbone is not None:
        facts["image_size"] = trained.backbone.spec.preprocessing.width
    captions, _ = captioner.caption(images, references.read_image, data_folder())
    free = ModelCaptions(source, captions, facts={**facts, "repeat_penalty": trained.search.repeat_penalty})
    models = [(captioner.experiment.name, free)]
    if constraints:
        sets = captioner.constraints(constraints, images, references.read_image)
        captions, satisfied = captioner.caption(images, references.read_image, data_folder(), sets, minimum_constraints)
        facts["constraints"] = {
            "source": str(constraints), "minimum": minimum_constraints, "satisfied": satisfied,
            "given": sum(map(len, sets.values())),
        }  # fmt: skip
        models.append((f"{captioner.experiment.name}, constrained", ModelCaptions(source, captions, facts=facts)))
    return models


def _with_unique_names(models: list[tuple[str, ModelCaptions]]) -> dict[str, ModelCaptions]:
    """Append its position to a name that several models have."""
    names = [name for name, _ in models]
    named: dict[str, ModelCaptions] = {}
    for place, (name, model) in enumerate(models, 1):
        while names.count(name) > 1 or name in named:
            name = f"{name} {place}"
        named[name] = model
    return named


def main() -> int:
    errors = (
        BackboneError,
        BundleError,
        CheckpointError,
        ConfigError,
        DataError,
        DetectorError,
        DeviceError,
        EngineError,
    )
    return run_command(evaluate, "python -m training.evaluate", errors)


if __name__ == "__main__":
    sys.exit(main())
