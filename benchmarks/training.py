"""Measure the trainer's own steps.

    python -m benchmarks.training [CONFIG] [--json FILE]

Each phase of the experiment file is trained by the real :class:`training.engine.trainer.Trainer` on generated data:
nothing has to be downloaded but the weights of a backbone that learns. A step lasts from the end of one optimizer step
to the end of the next one, so everything that happens between them is in it: moving average, logging, waiting for the
batch, forward and backward pass, clipping.
"""

import copy
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch.optim.optimizer import register_optimizer_step_post_hook

from benchmarks.environment import describe_environment, report
from benchmarks.generated_data import STORE, DataSize, generated_data
from training.command_line import DeviceOption, JsonOption, ThreadsOption, run_command
from training.configs.schema import DataConfig, ExperimentConfig, FeaturesConfig, PhaseConfig, Precision
from training.engine.distributed import DeviceError, Processes, check_compiler, choose_device
from training.engine.experiment import load_experiment
from training.engine.precision import choose_precision
from training.engine.recipe import Recipe
from training.engine.trainer import Trainer
from training.errors import BackboneError, ConfigError
from training.paths import CHECKOUT

DEFAULT = CHECKOUT / "training" / "configs" / "smart_flickr8k_scst.yaml"
TEACHING = PhaseConfig(name="teaching", epochs=1, learning_rate=3e-4, schedule="constant")
"""The phase that teaches a captioner to end its captions, before self-critical training is measured."""
_NEVER = 1e6
"""Minutes between checkpoints: none is written while steps are measured."""
_GPU_SETTLING_STEPS = 20
"""More than the number of batches that are read ahead, so that a block does not profit from them."""


class _EnoughStepsError(Exception):
    """Ends a run after its last measured step; not an error."""


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    blocks: int
    """Number of blocks of steps; each begins with the same weights."""
    steps: int
    """Measured steps of a block."""
    settling_steps: int
    """Steps before each block that are not measured."""
    teaching_steps: int
    """Steps of cross-entropy before self-critical training is measured."""


def measure(
    config: Annotated[Path, typer.Argument(help="Experiment file; of a recipe, all runs.")] = DEFAULT,
    phases: Annotated[
        list[str] | None, typer.Option("--phase", help="Phases to measure by kind (default: all), see below.")
    ] = None,
    device: DeviceOption = "auto",
    precision: Annotated[Precision | None, typer.Option(help="Default: that of the experiment.")] = None,
    compiled: Annotated[
        bool, typer.Option("--compile", help="Use torch.compile, even if the experiment does not.")
    ] = False,
    threads: ThreadsOption = None,
    blocks: Annotated[int, typer.Option(min=1, help="Blocks of steps.")] = 6,
    steps: Annotated[int, typer.Option(min=1, help="Measured steps of a block.")] = 5,
    settle: Annotated[
        int | None, typer.Option(min=0, help="Steps before each block, not measured (default: 2; on a GPU 20).")
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
    """Measure the steps of training.

    The phases are the last ones of each kind in the experiment file: cross_entropy and self_critical, on stored
    features; the same with _end_to_end where the backbone learns, and with _views where a frozen backbone sees random
    crops, both on photographs. Captions, features and photographs are generated, with lengths and word frequencies
    like Flickr8k's.
    """
    chosen = _choose(measured_phases(config), phases)
    where = choose_device(device)
    compiled = compiled or any(experiment.compile for experiment in chosen.values())
    if compiled:
        check_compiler(where)
    if threads:
        torch.set_num_threads(threads)
    settling_steps = settle if settle is not None else _GPU_SETTLING_STEPS if where.type == "cuda" else 2
    extent = Extent(blocks, steps, settling_steps, teaching_steps)
    first = next(iter(chosen.values()))
    chosen_precision = choose_precision(replace(first, precision=precision or first.precision), where).precision
    changes: dict[str, Any] = {"precision": chosen_precision, "compile": compiled, "checkpoint_minutes": _NEVER}
    chosen = {kind: replace(experiment, **changes) for kind, experiment in chosen.items()}
    batches = max(steps + settling_steps, teaching_steps) + 2
    images = max([images, *(experiment.phases[0].images_per_batch * batches for experiment in chosen.values())])
    size = DataSize(images, words, tokens, token_width)
    result: dict[str, Any] = {
        **describe_environment(seed),
        "device": torch.cuda.get_device_name(where) if where.type == "cuda" else "CPU",
        "precision": chosen_precision,
        "compile": compiled,
        "threads": torch.get_num_threads(),
        "experiment": first.name,
        "model": first.model,
        "data": asdict(size),
        "extent": asdict(extent),
    }
    photographs = any(not experiment.features for experiment in chosen.values())
    with generated_data(size, seed, photographs=photographs) as (data, section):
        result["phases"] = {}
        for kind, experiment in chosen.items():
            print(f"benchmarks.training: {kind}", file=sys.stderr, flush=True)
            try:
                result["phases"][kind] = _measure_phase(on_data(experiment, section), data, where, extent)
            except BackboneError as error:
                print(f"benchmarks.training: {kind} is left out: {error}", file=sys.stderr)
    report(result, json_file)


def main() -> int:
    return run_command(measure, "python -m benchmarks.training", (ConfigError, DeviceError))


def measured_phases(path: Path) -> dict[str, ExperimentConfig]:
    """List the phases of an experiment file by kind, the last one of each, each as an experiment that consists of it.

    Raises:
        ConfigError: the file is malformed.
    """
    phases: dict[str, ExperimentConfig] = {}
    for experiment, phase in ((run, phase) for run in _experiments(path) for phase in run.phases):
        changes: dict[str, Any] = {
            # Nothing comes before the phase.
            "phases": [replace(phase, from_best=False)],
            "start_from": "",
            "data": replace(experiment.data, extend_vocabulary=False),
        }
        if not phase.trains_backbone and (phase.crop == 1 or experiment.features):
            changes |= {"backbone": "", "more_backbones": [], "yolox": "", "features": FeaturesConfig(store=STORE)}
        phases[_kind(phase)] = replace(experiment, **changes)
    return phases


def _experiments(path: Path) -> list[ExperimentConfig]:
    """List the runs of a file; a backbone that an earlier run trains is replaced by the one that it starts with."""
    config = load_experiment(path)
    if isinstance(config, ExperimentConfig):
        return [config]
    experiments = []
    first_backbones: dict[str, str] = {}  # of each run, by the path of its result
    for run in Recipe(config, Path("/recipe"), str(path)).runs:
        backbone = first_backbones.get(run.config.backbone, run.config.backbone)
        experiments.append(replace(run.config, backbone=backbone))
        first_backbones[str(run.result)] = backbone
    return experiments


def _kind(phase: PhaseConfig) -> str:
    if phase.trains_backbone:
        return f"{phase.objective}_end_to_end"
    return f"{phase.objective}_views" if phase.crop < 1 else phase.objective


def _choose(known: Mapping[str, ExperimentConfig], kinds: Sequence[str] | None) -> dict[str, ExperimentConfig]:
    if unknown := [kind for kind in kinds or () if kind not in known]:
        raise ConfigError(f"--phase {unknown[0]}: the experiment file has {', '.join(known)}")
    return {kind: known[kind] for kind in kinds or known}


def on_data(experiment: ExperimentConfig, section: Mapping[str, Any]) -> ExperimentConfig:
    """Replace the data of an experiment by generated data."""
    lengths = {key: getattr(experiment.data, key) for key in ("max_words", "max_caption_words")}
    return replace(experiment, data=DataConfig(**section, **lengths))


def _measure_phase(experiment: ExperimentConfig, data: Path, device: torch.device, extent: Extent) -> dict[str, Any]:
    """Measure the steps of an experiment's only phase."""
    phase = experiment.phases[0]
    weights = _taught(experiment, data, device, extent.teaching_steps)
    taken = []
    for _ in range(extent.blocks):
        trainer = new_trainer(experiment, data, device)
        trainer.task.trained.captioner.load_state_dict(weights)
        taken.append(seconds_per_step(trainer.run, extent.settling_steps, extent.steps, device))
    return {
        "phase": phase.name,
        "images_per_batch": phase.images_per_batch,
        "visual_input": "stored features" if experiment.features else "photographs",
        "step_ms": _spread([1e3 * seconds for seconds in taken]),
        "images_per_second": _spread([phase.images_per_batch / seconds for seconds in taken]),
    }


def new_trainer(experiment: ExperimentConfig, data: Path, device: torch.device) -> Trainer:
    """Make the trainer of a run of its own in the data folder."""
    return Trainer(experiment, data, Path(tempfile.mkdtemp(dir=data)), data / "cache", Processes(device))


def _taught(experiment: ExperimentConfig, data: Path, device: torch.device, steps: int) -> dict[str, torch.Tensor]:
    """Return the weights of each block; for self-critical training those of a captioner that can end its captions."""
    phase = replace(TEACHING, images_per_batch=experiment.phases[0].images_per_batch)
    trainer = new_trainer(replace(experiment, phases=[phase]), data, device)
    if experiment.phases[0].objective == "self_critical":
        seconds_per_step(trainer.run, 0, steps, device)
    return copy.deepcopy(trainer.task.trained.captioner.state_dict())


def seconds_per_step(
    run: Callable[[], None],
    settling_steps: int,
    steps: int,
    device: torch.device,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Measure the mean time of optimizer steps, seconds.

    Args:
        run: trains; it is left after the last measured step.
        settling_steps: steps after the first one that are not measured.
        clock: returns seconds.

    Raises:
        RuntimeError: the run ended before its last measured step.
    """
    done, began = 0, 0.0

    def end_of_step(*_: object) -> None:
        nonlocal done, began
        done += 1
        if done in (1 + settling_steps, 1 + settling_steps + steps):
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if done == 1 + settling_steps:
                began = clock()
            else:
                raise _EnoughStepsError

    hook = register_optimizer_step_post_hook(end_of_step)
    try:
        run()
    except _EnoughStepsError:
        return (clock() - began) / steps
    finally:
        hook.remove()
    raise RuntimeError("the run ended before its steps were measured: it has too few images")


def _spread(values: Sequence[float]) -> dict[str, float]:
    """Return median, minimum and maximum of the blocks."""
    found = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: round(value, 3) for name, value in found.items()}


if __name__ == "__main__":
    sys.exit(main())
