"""Images a second of cross-entropy and of self-critical training, and the reward's share of a step.

    python -m benchmarks.training [CONFIG] [--device cuda] [--json FILE]

Model, precision and phases are those of an experiment file; visual tokens and captions are drawn at random (lengths
and word frequencies like Flickr8k's), so no data set is needed and reading pictures is not measured. A step is
forward (with beam search and reward), backward, clipping and Adam.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.environment import describe_environment, report
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.configs.schema import ExperimentConfig, PhaseConfig, load_config
from training.engine.distributed import Engine, EngineError, check_compiler, choose_device
from training.engine.step import LARGEST_GRADIENT
from training.errors import ConfigError
from training.models import FAMILIES
from training.models.captioner import Visual
from training.objectives import OBJECTIVES
from training.objectives.objective import TrainingCaptions
from training.objectives.self_critical import Reward, SelfCritical

DEFAULT = Path(__file__).resolve().parent.parent / "training" / "configs" / "smart_flickr8k_scst.yaml"
CAPTIONS_AN_IMAGE = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path, nargs="?", default=DEFAULT, help="experiment file")
    parser.add_argument("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda or cuda:N")
    parser.add_argument("--compile", action="store_true", help="compile, whatever the experiment says")
    parser.add_argument("--threads", type=int, help="CPU threads (default: all)")
    parser.add_argument("--steps", type=int, default=10, help="measured, after two that are not")
    parser.add_argument("--images", type=int, default=6000, help="of the corpus of the document frequencies")
    parser.add_argument("--words", type=int, default=2500, help="of the vocabulary")
    parser.add_argument("--tokens", type=int, default=49, help="visual tokens an image")
    parser.add_argument("--token-width", type=int, default=1280)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    try:
        config = load_config(arguments.config)
        engine = Engine(choose_device(arguments.device), config.precision)
        if compiled := config.compile or arguments.compile:
            check_compiler(engine.device)
    except (ConfigError, EngineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    # The first phase of each objective.
    phases = {phase.objective: phase for phase in reversed(config.phases)}
    captions = random_captions(arguments.images, arguments.words, config.data.max_words, arguments.seed)
    tokens_shape = (arguments.tokens, arguments.token_width)
    result = {
        **describe_environment(arguments.seed),
        "device": torch.cuda.get_device_name(engine.device) if engine.device.type == "cuda" else "cpu",
        "precision": "bf16" if engine.bf16 else "fp32",
        "compile": compiled,
        "threads": torch.get_num_threads(),
        "experiment": config.name,
        "model": config.model,
        "objectives": {
            name: measure(config, phase, captions, tokens_shape, engine, compiled, arguments)
            for name, phase in sorted(phases.items())
        },
    }
    report(result, arguments.json)
    return 0


def random_captions(images: int, words: int, max_words: int, seed: int) -> TrainingCaptions:
    """Captions of 6 to 17 words with word frequencies by Zipf's law."""
    random = np.random.default_rng(seed)
    vocabulary = Vocabulary((*SPECIAL, *(f"w{index}" for index in range(len(SPECIAL), words))))
    known = vocabulary.words[len(SPECIAL) :]
    share = 1 / np.arange(1, len(known) + 1)
    share /= share.sum()
    lengths = random.integers(6, 18, (images, CAPTIONS_AN_IMAGE))
    chosen = iter(random.choice(len(known), int(lengths.sum()), p=share))
    corpus = [[[known[next(chosen)] for _ in range(length)] for length in group] for group in lengths]
    return TrainingCaptions(corpus, vocabulary, max_words)


def measure(
    config: ExperimentConfig,
    phase: PhaseConfig,
    captions: TrainingCaptions,
    tokens_shape: tuple[int, int],
    engine: Engine,
    compiled: bool,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Median step of one phase on a captioner with random weights."""
    torch.manual_seed(arguments.seed)
    random = np.random.default_rng(arguments.seed)
    family = FAMILIES[config.family]
    vocabulary = captions.vocabulary
    model = family.Config(vocabulary_size=len(vocabulary), token_width=tokens_shape[1], **config.model)
    captioner = family(model).to(engine.device).train()
    if compiled:
        captioner.compile()
    objective = OBJECTIVES[phase.objective](captions, phase)
    optimizer = torch.optim.Adam(captioner.parameters(), lr=phase.learning_rate, betas=(0.9, 0.98), eps=1e-9)
    reward_seconds: list[float] = []
    if isinstance(objective, SelfCritical):
        objective.reward = timed(objective.reward, reward_seconds)
    seconds = []
    for _ in range(2 + arguments.steps):
        images = random.choice(arguments.images, phase.images_per_batch, replace=False)
        tokens = torch.randn(phase.images_per_batch, *tokens_shape, device=engine.device)
        started = time.perf_counter()
        with engine.autocast():
            loss = objective(captioner, Visual(tokens), images).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(captioner.parameters(), LARGEST_GRADIENT)
        optimizer.step()
        if engine.device.type == "cuda":
            torch.cuda.synchronize(engine.device)
        seconds.append(time.perf_counter() - started)
    step = statistics.median(seconds[2:])
    result = {
        "images_per_batch": phase.images_per_batch,
        "steps": arguments.steps,
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
    """``reward``, noting how long each call takes."""

    def score(images: np.ndarray, words: np.ndarray) -> np.ndarray:
        started = time.perf_counter()
        scores = reward(images, words)
        seconds.append(time.perf_counter() - started)
        return scores

    return score


if __name__ == "__main__":
    sys.exit(main())
