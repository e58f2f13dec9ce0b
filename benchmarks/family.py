"""All families of captioners, trained and measured alike: ``python -m benchmarks.family``.

Every captioner of a plan (``family.yaml``) is trained with the same data, visual tokens and recipe, with
several seeds, exported to a bundle and measured with ONNX Runtime. The picture has quality against time.
"""

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
import yaml
from numpy.typing import NDArray
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.ablation import RunFailedError
from benchmarks.decode import photographs
from benchmarks.environment import describe_environment, report, require_matplotlib
from benchmarks.process_use import resident_mb
from benchmarks.timing import measure
from export.bundle import ExportError
from export.options import ExportOptions
from export.pipeline import export_bundle
from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.files import replaced_atomically
from training.command_line import JsonOption, run_command
from training.configs.parsing import read_yaml
from training.data.photograph_inputs import visual_of_images
from training.engine.experiment import load_run
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, ConfigError
from training.paths import CHECKOUT

PLAN = Path(__file__).with_suffix(".yaml")
ENGINE = "onnxruntime-cpu"
METRICS = ("cider", "rouge_l", "bleu_4", "meteor")
MEANS = ("cider", "rouge_l")
"""Metrics of a corpus that are the means of its images."""
RESAMPLES = 2000


def family(
    plan: Annotated[Path, typer.Argument(help="Recipe and captioners.")] = PLAN,
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "1,2,3",
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Captioners of the plan (default: all).")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs and bundles.")] = CHECKOUT / "runs" / "family",
    rounds: Annotated[int, typer.Option(min=1, help="Number of times that each photograph is captioned.")] = 5,
    plot: Annotated[Path | None, typer.Option(help="Picture of quality against time; needs matplotlib.")] = None,
    json_file: JsonOption = None,
) -> None:
    """Train and measure captioners of all families alike: dev scores, parameters, operations, time and memory.

    The same command continues a benchmark that was stopped.
    """
    if plot is not None:
        require_matplotlib()
    numbers = [int(seed) for seed in seeds.split(",")]
    recipe, captioners = read_plan(plan, only)
    files = {name: write_experiments(recipe, name, captioners[name], numbers, runs) for name in captioners}
    for name, experiments in files.items():
        for experiment in experiments:
            print(f"{name}: {experiment.stem}", file=sys.stderr)
            _run("training.train", str(experiment), "--run", str(experiment.with_suffix("")))
    checkpoints = {name: [file.with_suffix("") / "best.safetensors" for file in own] for name, own in files.items()}
    scores = {
        name: dev_scores(own, recipe["data"]["dataset"], runs / f"{name}.json") for name, own in checkpoints.items()
    }
    bundles = {name: export_once(own[0], runs / f"{name}-bundle") for name, own in checkpoints.items()}
    times = caption_times(bundles, checkpoints, rounds)
    result = {
        **describe_environment(numbers[0]),
        "recipe": recipe,
        "split": "dev",
        "seeds": numbers,
        "captioners": {
            name: {
                **captioners[name],
                "scores": scores[name],
                **sizes(checkpoints[name][0]),
                "private_memory_mb": memory_mb(bundles[name]),
                **times[name],
            }
            for name in captioners
        },
    }
    report(result, json_file)
    if plot is not None:
        draw(result, plot)


def main() -> int:
    errors = (BundleError, CheckpointError, ConfigError, EngineError, ExportError, RunFailedError, ValueError)
    return run_command(family, "python -m benchmarks.family", errors)


def read_plan(path: Path, only: Sequence[str] | None) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Read the recipe, an experiment without name, seed, family and model, and the captioners by name.

    Raises:
        ConfigError: the file is missing or malformed, or has no captioner of a wanted name.
    """
    plan = read_yaml(path)
    if plan.keys() != {"recipe", "captioners"}:
        raise ConfigError(f"{path}: expected the keys recipe and captioners, found {', '.join(plan) or 'none'}")
    captioners: dict[str, dict[str, Any]] = plan["captioners"]
    for name in only or ():
        if name not in captioners:
            raise ConfigError(f"{path} has no captioner {name!r}; it has {', '.join(captioners)}")
    return plan["recipe"], {name: captioners[name] for name in only or captioners}


def write_experiments(
    recipe: Mapping[str, Any], name: str, captioner: Mapping[str, Any], seeds: Sequence[int], runs: Path
) -> list[Path]:
    """Write the experiment file of each seed; all of them are checked before anything is trained.

    Raises:
        ConfigError: an experiment is wrong.
    """
    runs.mkdir(parents=True, exist_ok=True)
    files = []
    for seed in seeds:
        file = runs / f"{name}-seed-{seed}.yaml"
        experiment = {"name": file.stem, "seed": seed, **captioner, **recipe}
        file.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
        load_run(file)
        files.append(file)
    return files


def dev_scores(checkpoints: Sequence[Path], dataset: str, file: Path) -> dict[str, dict[str, Any]]:
    """Score the dev split, unless an earlier command has, and average over the seeds.

    Returns:
        For each metric the mean over the seeds and the score of each seed; for those that are means over the images a
        95 % interval by resampling the images, each with its mean over the seeds.

    Raises:
        RunFailedError: the evaluation failed.
    """
    if not _has_scores(file, checkpoints):
        _run(
            "training.evaluate", "--checkpoint", *map(str, checkpoints), "--dataset", dataset, "--split", "dev",
            "--resamples", "1", "--json", str(file),
        )  # fmt: skip
    models = list(json.loads(file.read_text(encoding="utf-8"))["models"].values())
    scores = {}
    for metric in METRICS:
        if any(model["scores"].get(metric) is None for model in models):
            continue
        seeds = [model["scores"][metric] for model in models]
        scores[metric] = {"mean": round(float(np.mean(seeds)), 4), "seeds": seeds}
        if metric in MEANS:
            per_image = [[values[metric] for values in model["per_image"].values()] for model in models]
            scores[metric]["interval"] = _interval(np.mean(per_image, axis=0))
    return scores


def _has_scores(file: Path, checkpoints: Sequence[Path]) -> bool:
    """Return whether a file of an earlier evaluation scores the captioners of these runs, and no others."""
    try:
        return list(json.loads(file.read_text(encoding="utf-8"))["models"]) == [
            path.parent.name for path in checkpoints
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _interval(values: NDArray[np.float64]) -> list[float]:
    """Compute the 95 % interval of the mean by a percentile bootstrap."""
    random = np.random.default_rng(0)
    means = values[random.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
    return [round(float(edge), 4) for edge in np.percentile(means, (2.5, 97.5))]


def export_once(checkpoint: Path, bundle: Path) -> Path:
    """Export a checkpoint, unless its bundle is there already.

    Raises:
        ExportError: the bundle disagrees with torch.
    """
    if not bundle.exists():
        export_bundle(ExportOptions(checkpoint, bundle, check_images=20))
    return bundle


def sizes(checkpoint: Path) -> dict[str, float]:
    """Count the captioner's parameters, and the operations of one caption of a photograph with beam search.

    A multiplication and the addition of its product are two operations.
    """
    trained = TrainedCaptioner.load(checkpoint)
    assert trained.backbone is not None
    frame = trained.backbone.spec.preprocessing.apply(photographs(1)[0][0])
    with torch.inference_mode():
        visual = visual_of_images(trained.backbone, torch.from_numpy(frame[None]))
        with FlopCounterMode(display=False) as counter:
            trained.caption(visual, beam_size=5, max_words=20, attention=False)
    return {
        "million_parameters": round(sum(weight.numel() for weight in trained.captioner.parameters()) / 1e6, 2),
        "gflop_per_caption": round(counter.get_total_flops() / 1e9, 3),
    }


def caption_times(
    bundles: Mapping[str, Path], checkpoints: Mapping[str, Sequence[Path]], rounds: int
) -> dict[str, dict[str, float]]:
    """Time the captioner graphs alone, one photograph at a time, one thread, in turns."""
    captioners = {name: Captioner.from_bundle(bundle, engine=ENGINE, threads=1) for name, bundle in bundles.items()}
    first = next(iter(captioners.values()))
    tokens = [first.visual_tokens(frame) for frame in photographs(16)[0]]
    variants = {name: partial(_decode, captioner) for name, captioner in captioners.items()}
    return measure(variants, tokens, rounds)


def _decode(captioner: Captioner, tokens: np.ndarray) -> object:
    return captioner.decode(tokens)


def memory_mb(bundle: Path) -> float:
    """Measure what loading the bundle and captioning one frame adds to the private memory of a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_memory_of_this_process, (bundle,))


def _memory_of_this_process(bundle: Path) -> float:
    before = resident_mb()["private"]
    captioner = Captioner.from_bundle(bundle, engine=ENGINE, threads=1)
    captioner.warm_up()
    return round(resident_mb()["private"] - before, 1)


def draw(result: Mapping[str, Any], path: Path) -> None:
    """Draw dev CIDEr with its interval against the time of a caption."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for name, captioner in result["captioners"].items():
        cider = captioner["scores"]["cider"]
        low, high = cider["interval"]
        x, y = captioner["cpu_ms_median"], cider["mean"]
        axes.errorbar(x, y, yerr=[[y - low], [high - y]], fmt="o", capsize=3)
        axes.annotate(name, (x, y), xytext=(6, 4), textcoords="offset points")
    axes.set_xlabel("processor time of a caption, one thread, in ms (without the vision graph)")
    axes.set_ylabel(f"dev CIDEr, mean of {len(result['seeds'])} seeds")
    axes.grid(alpha=0.3)
    axes.margins(x=0.2)  # for the names
    with replaced_atomically(path) as unfinished:
        figure.savefig(unfinished, format=path.suffix.lstrip(".") or "svg")
    pyplot.close(figure)


def _run(module: str, *arguments: str) -> None:
    status = subprocess.run([sys.executable, "-m", module, *arguments], cwd=CHECKOUT, stdout=sys.stderr).returncode
    if status:
        raise RunFailedError(f"{module} ended with exit status {status}; its error is above")


if __name__ == "__main__":
    sys.exit(main())
