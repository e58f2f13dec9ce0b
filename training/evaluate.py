"""Score captioners side by side: ``python -m training.evaluate``."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.files import write_text_atomically
from training.command_line import JsonOption, run_command
from training.data.coco import read_results
from training.errors import CheckpointError, DataError
from training.evaluation.comparison import Comparison, ModelCaptions, caption_references
from training.evaluation.references import References, read_chair_data
from training.paths import data_folder


def evaluate(
    bundle: Annotated[list[Path], typer.Option(help="Bundle folders (default: the bundle that ships).")] = [],  # noqa: B006
    engine: Annotated[str, typer.Option(help="Engine of the bundles (auto: the fastest that works).")] = "auto",
    checkpoint: Annotated[list[Path], typer.Option(help="best.safetensors of runs, run by torch.")] = [],  # noqa: B006
    captions: Annotated[list[Path], typer.Option(help="COCO result files.")] = [],  # noqa: B006
    dataset: Annotated[
        str | None, typer.Option(help="Data set: flickr8k (the default without --karpathy and --references).")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="train, dev (default) or test; Karpathy's are train, restval, val (default), test."),
    ] = None,
    karpathy: Annotated[Path | None, typer.Option(help="dataset_coco.json: COCO by Karpathy's splits.")] = None,
    references: Annotated[Path | None, typer.Option(help="COCO caption annotations, instead of a data set.")] = None,
    images: Annotated[Path | None, typer.Option(help="Folder of the images, for bundles and checkpoints.")] = None,
    instances: Annotated[list[Path], typer.Option(help="COCO instance annotations, for CHAIR.")] = [],  # noqa: B006
    chair_synonyms: Annotated[
        Path | None, typer.Option(help="Synonym list (default: lexicon/chair_synonyms.txt of the data folder).")
    ] = None,
    document_frequencies: Annotated[
        Path | None,
        typer.Option(
            help="COCO caption annotations in which CIDEr-D counts (default: the train split, else the references)."
        ),
    ] = None,
    resamples: Annotated[int, typer.Option(min=1, help="Resamples of the bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    json_path: JsonOption = None,
    record: Annotated[bool, typer.Option("--record", help="Write the scores into the bundles' manifests.")] = False,
) -> None:
    """Score captioners side by side: bundles, checkpoints or result files against human captions.

    \b
    Examples:
      python -m training.evaluate --bundle B [B2 ...] --dataset flickr8k --split test --json out.json
      python -m training.evaluate --checkpoint runs/R/best.safetensors --karpathy dataset_coco.json --split test
      python -m training.evaluate --captions results.json [more.json ...] --references captions_val2017.json
      python -m training.evaluate --bundle B --references captions_val2017.json --images val2017/ \\
          --instances instances_val2017.json
    """
    if references and (dataset or karpathy or split):
        raise typer.BadParameter("give --references or a data set and its split, not both")
    if karpathy and dataset:
        raise typer.BadParameter("give --karpathy or --dataset, not both")
    if dataset not in (None, "flickr8k"):
        raise typer.BadParameter(f"{dataset!r} is not flickr8k", param_hint="--dataset")
    if images and not (references or karpathy):
        raise typer.BadParameter("--images goes with --references or --karpathy")
    if (references or karpathy) and not images and (bundle or not (captions or checkpoint)):
        raise typer.BadParameter("a bundle needs --images, the folder of the images that the captions are of")
    if chair_synonyms and not instances:
        raise typer.BadParameter("--chair-synonyms goes with --instances")
    bundles: list[Path | None] = [*bundle] or ([] if captions or checkpoint else [None])
    if record and not bundles:
        raise typer.BadParameter("--record goes with a bundle")
    if json_path and not json_path.parent.is_dir():
        raise DataError(f"{json_path} cannot be written: no such folder")
    against = _references(references, karpathy, split, images)
    if document_frequencies:
        against = against.with_frequencies_of(document_frequencies)
    synonyms = chair_synonyms or data_folder() / "lexicon" / "chair_synonyms.txt"
    chair_data = read_chair_data(instances, synonyms) if instances else None
    models = [(path.stem, ModelCaptions(str(path), read_results(path))) for path in captions]
    captioners = [Captioner.from_bundle(path, engine=engine) for path in bundles]
    models += [(captioner.model, caption_references(captioner, against)) for captioner in captioners]
    models += [_caption_with_checkpoint(path, against) for path in checkpoint]
    with Console(stderr=True).status("scoring"):  # prints nothing where stderr is not a terminal
        comparison = Comparison.of(against, _with_unique_names(models), chair_data)
    bootstrap = comparison.bootstrap(resamples, seed)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(comparison.table(bootstrap))
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


def _references(references: Path | None, karpathy: Path | None, split: str | None, images: Path | None) -> References:
    if references:
        return References.of_coco(references, images)
    if karpathy:
        return References.of_karpathy(karpathy, split or "val", images)
    return References.of_flickr8k(data_folder(), split or "dev")


def _caption_with_checkpoint(path: Path, references: References) -> tuple[str, ModelCaptions]:
    # Imported here, because bundles and result files need no torch.
    from training.engine.checkpoint_captions import CheckpointCaptioner

    captioner = CheckpointCaptioner(path)
    captions = captioner.caption(list(references.captions), references.read_image, data_folder())
    facts = {"engine": "torch", "beam_size": captioner.experiment.evaluation.beam_size}
    return captioner.name, ModelCaptions(str(path), captions, facts=facts)


def _with_unique_names(models: list[tuple[str, ModelCaptions]]) -> dict[str, ModelCaptions]:
    """Append its position to a name that several models have."""
    names = [name for name, _ in models]
    return {
        (name if names.count(name) == 1 else f"{name} {place}"): model for place, (name, model) in enumerate(models, 1)
    }


def main() -> int:
    """Run the command and return its exit status."""
    return run_command(evaluate, "python -m training.evaluate", (BundleError, CheckpointError, DataError, EngineError))


if __name__ == "__main__":
    sys.exit(main())
