"""Measure the trainer's own steps, beside those of another commit and of the published recipe.

    python -m benchmarks.training [CONFIG] [--against COMMIT] [--published] [--profile] [--json FILE]

Each phase of the experiment file is trained by the real :class:`training.engine.trainer.Trainer`, in a process of its
own, on generated data: nothing has to be downloaded. A step lasts from the end of one optimizer step to the end of the
next one, so everything that happens between them is in it: moving average, logging, waiting for the batch, forward and
backward pass, clipping. Sides take turns, a block of steps each, so that other load on the machine affects all of them.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks.environment import describe_environment
from benchmarks.training_steps.generated_data import DataSize, write_data
from benchmarks.training_steps.measurement import OURS, Entrant, Extent, measure_phase, write_weights
from benchmarks.training_steps.phases import MeasuredPhase, measured_phases, missing_networks
from benchmarks.training_steps.sides import MeasurementError, Side, describe_commit, extract_commit
from benchmarks.training_steps.tables import markdown
from smart_caption_ros.files import write_text_atomically
from training.command_line import DeviceOption, JsonOption, ThreadsOption, run_command
from training.engine.distributed import DeviceError, check_compiler, choose_device
from training.engine.precision import choose_precision
from training.errors import ConfigError
from training.paths import CHECKOUT

DEFAULT = CHECKOUT / "training" / "configs" / "smart_flickr8k_scst.yaml"
GPU_SETTLING_STEPS = 20
"""More than the batches that are read ahead, so that a block does not live on them."""


def measure(
    config: Annotated[Path, typer.Argument(help="Experiment file; of a recipe, all runs of captioners.")] = DEFAULT,
    against: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Measure another commit's trainer, too, in turns with ours.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Measure M2's published recipe of self-critical training, too.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Measure as many steps again by part; on a GPU also trace its work.")
    ] = False,
    phases: Annotated[
        list[str] | None, typer.Option("--phase", help="Phases to measure by kind (default: all), see below.")
    ] = None,
    device: DeviceOption = "auto",
    precision: Annotated[str | None, typer.Option(help="auto, fp32 or bf16 (default: that of the experiment).")] = None,
    compiled: Annotated[
        bool, typer.Option("--compile", help="Use torch.compile, even if the experiment does not.")
    ] = False,
    threads: ThreadsOption = None,
    blocks: Annotated[int, typer.Option(min=1, help="Blocks of steps of each side.")] = 6,
    steps: Annotated[int, typer.Option(min=1, help="Measured steps of a block.")] = 5,
    settle: Annotated[
        int | None, typer.Option(min=0, help="Steps before each block, not measured (default: 1; on a GPU 20).")
    ] = None,
    teaching_steps: Annotated[
        int, typer.Option(min=1, help="Steps of cross-entropy before self-critical training, so that captions end.")
    ] = 50,
    images: Annotated[int, typer.Option(min=1, help="Images of the corpus.")] = DataSize.images,
    words: Annotated[int, typer.Option(min=5, help="Words of the vocabulary.")] = DataSize.words,
    tokens: Annotated[int, typer.Option(min=1, help="Visual tokens of an image in stored features.")] = DataSize.tokens,
    token_width: Annotated[int, typer.Option(min=1, help="Width of a visual token.")] = DataSize.token_width,
    seed: Annotated[int, typer.Option(help="Seed of the generated data.")] = 0,
    json_file: JsonOption = None,
) -> None:
    """Measure the steps of training, beside those of another commit and of the published recipe.

    Prints Markdown tables. The phases are the last ones of each kind in the experiment file: cross_entropy and
    self_critical, on stored features; the same with _end_to_end where the backbone learns, and with _views where a
    frozen backbone sees random crops, both on photographs. Captions, features and photographs are generated, with
    lengths and word frequencies like Flickr8k's.
    """
    chosen = _choose(measured_phases(config, precision, compiled), phases)
    where = choose_device(device)
    compiled = any(phase.experiment.compile for phase in chosen)
    if compiled:
        check_compiler(where)
    on_gpu = where.type == "cuda"
    extent = Extent(
        blocks=blocks,
        steps=steps,
        settling_steps=(GPU_SETTLING_STEPS if on_gpu else 1) if settle is None else settle,
        teaching_steps=teaching_steps,
        parts=profile,
        trace=profile and on_gpu,
    )
    # An epoch has more steps than are measured.
    batches = max(extent.all_steps, teaching_steps) + 1
    images = max([images, *(phase.phase.images_per_batch * batches for phase in chosen)])
    if threads:
        torch.set_num_threads(threads)
    # Chosen once, so that all sides compute in the same precision.
    chosen_precision = choose_precision(chosen[0].experiment, where).precision
    chosen = [phase.in_precision(chosen_precision) for phase in chosen]
    setting = Setting(str(where), chosen_precision == "bf16", threads, against, published, extent)
    result = {
        **describe_environment(seed),
        "commit": describe_commit(),
        "device": torch.cuda.get_device_name(where) if on_gpu else "CPU",
        "precision": chosen_precision,
        "compile": compiled,
        "threads": torch.get_num_threads(),
        "experiment": chosen[0].experiment.name,
        "model": chosen[0].experiment.model,
        "data": asdict(size := DataSize(images, words, tokens, token_width)),
        "extent": asdict(extent),
        "phases": measure_phases(chosen, setting, size, seed),
    }
    print(markdown(result))
    if json_file is not None:
        write_text_atomically(json_file, json.dumps(result, indent=2) + "\n")


def main() -> int:
    return run_command(measure, "python -m benchmarks.training", (ConfigError, DeviceError, MeasurementError))


@dataclass(frozen=True)
class Setting:
    """What all measurements of a run have in common."""

    device: str
    bf16: bool
    threads: int | None
    against: str | None
    """Another commit; None: none."""
    published: bool
    """Whether the published recipe is measured."""
    extent: Extent


def measure_phases(phases: Sequence[MeasuredPhase], setting: Setting, size: DataSize, seed: int) -> dict[str, Any]:
    """Measure phases on generated data, by kind."""
    with tempfile.TemporaryDirectory(prefix="benchmarks-training-") as name, ExitStack() as stack:
        folder = Path(name)
        data = folder / "data"
        data.mkdir()
        section = write_data(data, size, seed, photographs=any(phase.on_photographs for phase in phases))

        def start(title: str, checkout: Path = CHECKOUT) -> Side:
            return stack.enter_context(Side(title, checkout, folder / f"{title}.log", setting.threads))

        trainers = {OURS: start(OURS)}
        if setting.against:
            trainers[setting.against] = start(setting.against, extract_commit(setting.against, folder))
        recipes: dict[str, tuple[Side, str]] = {}
        if setting.published:
            # As published, and in the precision of our trainer.
            for precision in ("fp32", "bf16")[: 1 + setting.bf16]:
                recipes[f"published {precision}"] = (start(f"published {precision}"), precision)
        results = {}
        for number, phase in enumerate(phases):
            _say(phase.kind)
            experiment = phase.options(section)
            weights = folder / f"weights-{number}.safetensors"
            common = {"experiment": experiment, "data": str(data), "device": setting.device, "weights": str(weights)}
            taught = setting.extent.teaching_steps if phase.is_self_critical else 0
            # The older code makes the weights: later code can read them.
            first = write_weights(
                list(trainers.values())[-1], taught, {**common, "experiment": phase.teaching().options(section)}
            )
            entrants = [
                Entrant(title, side, "train", {**common, "folder": str(folder / f"run-{number}-{place}")})
                for place, (title, side) in enumerate(trainers.items())
            ]
            if phase.kind == "self_critical":
                entrants += [
                    Entrant(title, side, "publish", {**common, "precision": precision})
                    for title, (side, precision) in recipes.items()
                ]
            results[phase.kind] = {
                "first_weights": first,
                **measure_phase(phase, entrants, setting.extent, folder),
            }
    return results


def _choose(phases: Sequence[MeasuredPhase], kinds: Sequence[str] | None) -> list[MeasuredPhase]:
    """Choose the phases of these kinds, without those whose networks do not exist here.

    Raises:
        ConfigError: there is no such phase.
    """
    known = {phase.kind: phase for phase in phases}
    if unknown := [kind for kind in kinds or () if kind not in known]:
        raise ConfigError(f"--phase {unknown[0]}: the experiment file has {', '.join(known)}")
    chosen = []
    for phase in (known[kind] for kind in kinds or known):
        if phase.on_photographs and (problem := missing_networks(phase.experiment)):
            _say(f"{phase.kind} is left out: {problem}")
        else:
            chosen.append(phase)
    if not chosen:
        raise ConfigError("there is no phase to measure")
    return chosen


def _say(what: str) -> None:
    print(f"benchmarks.training: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
