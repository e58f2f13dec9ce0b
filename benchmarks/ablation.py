"""Train an experiment with one option varied: ``python -m benchmarks.ablation``."""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from benchmarks.environment import describe_environment, report
from training.command_line import JsonOption, run_command
from training.configs.parsing import read_yaml
from training.engine.experiment import load_run
from training.errors import ConfigError
from training.paths import CHECKOUT

METRICS = ("bleu_1", "bleu_4", "rouge_l", "cider")


class RunFailedError(Exception):
    """A training run ended with an error."""


def ablation(
    config: Annotated[Path, typer.Argument(help="Experiment file of one run.")],
    vary: Annotated[
        str,
        typer.Option(metavar="KEY=A,B,...", help="Option and values: model.memory_slots=0,40, phases.0.crop=1,0.7."),
    ],
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "1,2,3",
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = CHECKOUT / "runs" / "ablation",
    json_file: JsonOption = None,
) -> None:
    """Train an experiment with one option varied and several seeds for each value, and compare the dev scores.

    Every run has its own experiment file and folder; the same command resumes an ablation that was stopped. The score
    of a run is that of its last epoch, not of its best one, so that runs with more epochs have no advantage.
    """
    report(measure(config, vary, seeds, runs), json_file)


def main() -> int:
    return run_command(ablation, "python -m benchmarks.ablation", (ConfigError, RunFailedError, ValueError))


def measure(config: Path, vary: str, seeds: str, runs: Path) -> dict[str, Any]:
    """Train all runs in sequence and collect their dev scores.

    Raises:
        ConfigError: the experiment file, or the option with one of its values, is wrong.
        ValueError: ``vary`` or ``seeds`` is malformed.
        RunFailedError: a run failed.
    """
    key, separator, listed = vary.partition("=")
    values = [yaml.safe_load(value) for value in listed.split(",")]
    if not separator or not listed:
        raise ValueError(f"--vary wants KEY=A,B,..., not {vary!r}")
    numbers = [int(seed) for seed in seeds.split(",")]
    load_run(config)
    raw = read_yaml(config)
    planned = [(value, seed, _write(raw, key, value, seed, runs)) for value in values for seed in numbers]
    for _, _, file in planned:
        load_run(file)
    scores: dict[Any, list[dict[str, float]]] = {value: [] for value in values}
    for value, seed, file in planned:
        print(f"{key} = {value}, seed {seed}", file=sys.stderr)
        folder = file.with_suffix("")
        command = [sys.executable, "-m", "training.train", str(file), "--run", str(folder)]
        status = subprocess.run(command, cwd=CHECKOUT, stdout=sys.stderr).returncode
        if status:
            raise RunFailedError(f"a run ended with exit status {status}; its error is above")
        epochs = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        last, seconds = epochs[-1], sum(epoch["seconds"] for epoch in epochs)
        run = {"seed": seed, **{metric: last[metric] for metric in METRICS}, "seconds": round(seconds, 1)}
        scores[value].append(run)
    return {
        **describe_environment(numbers[0]),
        "experiment": raw,
        "varied": key,
        "split": "dev",
        "results": [{"value": value, **_summary(runs), "runs": runs} for value, runs in scores.items()],
    }


def _write(raw: dict[str, Any], key: str, value: Any, seed: int, runs: Path) -> Path:
    """Write an experiment file with a value of the option and a seed."""
    experiment = json.loads(json.dumps(raw))  # a copy of plain keys and values
    place = experiment
    *parents, name = key.split(".")
    for parent in parents:
        if not isinstance(place, list):
            place = place.setdefault(parent, {})
        elif parent.isdecimal() and int(parent) < len(place):
            place = place[int(parent)]
        else:
            raise ValueError(f"--vary {key}: {parent} should be one of 0 to {len(place) - 1}")
    place[name] = value
    experiment["seed"] = seed
    experiment["name"] = f"{raw.get('name', 'run')}-{name}-{value}-seed-{seed}"
    runs.mkdir(parents=True, exist_ok=True)
    file = runs / f"{experiment['name']}.yaml"
    file.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
    return file


def _summary(runs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Compute the mean and the sample standard deviation over the seeds."""
    return {
        metric: {
            "mean": round(statistics.fmean(run[metric] for run in runs), 4),
            "deviation": round(statistics.stdev(run[metric] for run in runs), 4) if len(runs) > 1 else 0.0,
        }
        for metric in METRICS
    }


if __name__ == "__main__":
    sys.exit(main())
