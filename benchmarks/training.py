"""Measure the speed of training: ``python -m benchmarks.training``."""

import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from benchmarks.environment import describe_environment, report
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.command_line import DeviceOption, JsonOption, ThreadsOption, run_command
from training.configs.schema import ExperimentConfig, PhaseConfig, RecipeConfig
from training.engine.distributed import DeviceError, Processes, check_compiler, choose_device
from training.engine.experiment import load_experiment
from training.engine.optimizers import clip_gradient, make_optimizer
from training.engine.recipe import Recipe
from training.errors import ConfigError
from training.models import FAMILIES
from training.models.captioner import Visual
from training.objectives import OBJECTIVES
from training.objectives.objective import TrainingCaptions
from training.objectives.self_critical import Reward, SelfCritical

DEFAULT = Path(__file__).resolve().parent.parent / "training" / "configs" / "smart_flickr8k_scst.yaml"
CAPTIONS_AN_IMAGE = 5


def measure(
    config: Annotated[Path, typer.Argument(help="Experiment file; of a recipe, all runs of captioners.")] = DEFAULT,
    device: DeviceOption = "auto",
    compiled: Annotated[
        bool, typer.Option("--compile", help="Use torch.compile, even if the experiment does not.")
    ] = False,
    threads: ThreadsOption = None,
    steps: Annotated[int, typer.Option(min=1, help="Number of measured steps, after two of warm-up.")] = 10,
    images: Annotated[int, typer.Option(min=1, help="Images of the corpus for document frequencies.")] = 6000,
    words: Annotated[int, typer.Option(min=5, help="Words of the vocabulary.")] = 2500,
    tokens: Annotated[int, typer.Option(min=1, help="Visual tokens per image.")] = 49,
    token_width: Annotated[int, typer.Option(min=1, help="Width of a visual token.")] = 1280,
    seed: Annotated[int, typer.Option(help="Seed of weights, tokens and captions.")] = 0,
    json_file: JsonOption = None,
) -> None:
    """Measure images per second of cross-entropy and of self-critical training, and the reward's share of a step.

    Model, precision and phases are those of an experiment file; visual tokens and captions are random (lengths and
    word frequencies like Flickr8k's), so no data set is needed and reading images is not measured. A step is
    forward (with beam search and reward), backward, clipping and the optimizer.
    """
    if threads:
        torch.set_num_threads(threads)
    experiments = captioner_experiments(config)
    processes = Processes(choose_device(device), experiments[-1].precision)
    compiled = compiled or experiments[-1].compile
    if compiled:
        check_compiler(processes.device)
    # The first phase of each objective.
    phases = {phase.objective: phase for each in reversed(experiments) for phase in reversed(each.phases)}
    max_words = experiments[-1].data.max_words
    setting = Setting(experiments[-1], processes, compiled, steps, images, (tokens, token_width), seed)
    captions = random_captions(images, words, max_words, seed)
    result = {
        **describe_environment(seed),
        "device": torch.cuda.get_device_name(processes.device) if processes.device.type == "cuda" else "cpu",
        "precision": "bf16" if processes.bf16 else "fp32",
        "compile": compiled,
        "threads": torch.get_num_threads(),
        "experiment": experiments[-1].name,
        "model": experiments[-1].model,
        "objectives": {name: measure_phase(setting, phase, captions) for name, phase in sorted(phases.items())},
    }
    report(result, json_file)


def main() -> int:
    return run_command(measure, "python -m benchmarks.training", (ConfigError, DeviceError))


def captioner_experiments(path: Path) -> list[ExperimentConfig]:
    """List the experiments of captioners in a file.

    Raises:
        ConfigError: the file is malformed, or has no such experiment.
    """
    config = load_experiment(path)
    runs = (
        [run.config for run in Recipe(config, Path(), str(path)).runs] if isinstance(config, RecipeConfig) else [config]
    )
    experiments = [run for run in runs if isinstance(run, ExperimentConfig)]
    if not experiments:
        raise ConfigError(f"{path}: expected a run with the task captioning, found none")
    return experiments


@dataclass(frozen=True)
class Setting:
    """Settings that all measurements have in common."""

    experiment: ExperimentConfig
    processes: Processes
    compiled: bool
    steps: int
    images: int
    """Images of the corpus."""
    tokens_shape: tuple[int, int]
    """Visual tokens of an image and their width."""
    seed: int


def random_captions(images: int, words: int, max_words: int, seed: int) -> TrainingCaptions:
    """Draw captions of 6 to 17 words with word frequencies by Zipf's law."""
    random = np.random.default_rng(seed)
    vocabulary = Vocabulary((*SPECIAL, *(f"w{index}" for index in range(len(SPECIAL), words))))
    known = vocabulary.words[len(SPECIAL) :]
    share = 1 / np.arange(1, len(known) + 1)
    share /= share.sum()
    lengths = random.integers(6, 18, (images, CAPTIONS_AN_IMAGE))
    chosen = iter(random.choice(len(known), int(lengths.sum()), p=share))
    corpus = [[[known[next(chosen)] for _ in range(length)] for length in group] for group in lengths]
    return TrainingCaptions(corpus, vocabulary, max_words, max_words)


def measure_phase(setting: Setting, phase: PhaseConfig, captions: TrainingCaptions) -> dict[str, Any]:
    """Measure the median time of a step of a phase, on a captioner with random weights."""
    torch.manual_seed(setting.seed)
    random, processes = np.random.default_rng(setting.seed), setting.processes
    family = FAMILIES[setting.experiment.family]
    model = family.Config(
        vocabulary_size=len(captions.vocabulary), token_width=setting.tokens_shape[1], **setting.experiment.model
    )
    captioner = family(model).to(processes.device).train()
    if setting.compiled:
        captioner.compile()
    objective = OBJECTIVES[phase.objective](captions, phase)
    optimizer = make_optimizer(phase.optimizer, [{"params": list(captioner.parameters()), "lr": phase.learning_rate}])
    reward_seconds: list[float] = []
    if isinstance(objective, SelfCritical):
        objective.reward = timed(objective.reward, reward_seconds)
    seconds = []
    for _ in range(2 + setting.steps):
        images = random.choice(setting.images, phase.images_per_batch, replace=False)
        tokens = torch.randn(phase.images_per_batch, *setting.tokens_shape, device=processes.device)
        started = time.perf_counter()
        with processes.autocast():
            loss = objective(captioner, Visual(tokens), images).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clip_gradient(captioner, phase.clipping)
        optimizer.step()
        if processes.device.type == "cuda":
            torch.cuda.synchronize(processes.device)
        seconds.append(time.perf_counter() - started)
    step = statistics.median(seconds[2:])
    result = {
        "images_per_batch": phase.images_per_batch,
        "steps": setting.steps,
        "step_ms_median": round(step * 1e3, 2),
        "images_per_second": round(phase.images_per_batch / step, 2),
    }
    if reward_seconds:
        reward = statistics.median(reward_seconds[2:])
        result |= {
            "beam_size": phase.beam_size,
            "reward_ms_median": round(reward * 1e3, 2),
            "reward_share_of_step": round(reward / step, 4),
        }
    return result


def timed(reward: Reward, seconds: list[float]) -> Reward:
    """Wrap a reward so that the time of each call is appended to ``seconds``."""

    def score(images: np.ndarray, words: np.ndarray) -> np.ndarray:
        started = time.perf_counter()
        scores = reward(images, words)
        seconds.append(time.perf_counter() - started)
        return scores

    return score


if __name__ == "__main__":
    sys.exit(main())
