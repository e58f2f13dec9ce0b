"""Train one experiment with one option varied and several seeds each, and compare the dev scores.

    python -m benchmarks.ablation training/configs/smart_flickr8k_reduced.yaml \\
        --vary model.memory_slots=0,40 --seeds 1,2,3 [--runs FOLDER] [--json FILE]

Every run is ``python -m training.train`` on a file of its own, so it goes on where it was stopped when the same
command is given again. A run's score is that of its last epoch, so no run gains by having more epochs to choose
from. The dev split alone is looked at.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from benchmarks.environment import describe_environment, report
from training.configs.schema import load_config
from training.errors import ConfigError
from training.paths import CHECKOUT

METRICS = ("bleu_1", "bleu_4", "rouge_l", "cider")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("--vary", required=True, metavar="KEY=A,B,...", help="e.g. model.memory_slots=0,40")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--runs", type=Path, default=CHECKOUT / "runs" / "ablation", help="folder of the runs")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    try:
        result = measure(arguments.config, arguments.vary, arguments.seeds, arguments.runs)
    except (ConfigError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"error: a run ended with exit status {error.returncode}; what it said stands above", file=sys.stderr)
        return 1
    report(result, arguments.json)
    return 0


def measure(config: Path, vary: str, seeds: str, runs: Path) -> dict[str, Any]:
    """Train all runs, one after the other, and gather their dev scores.

    Raises:
        ConfigError: the experiment file, or the option with one of its values, is wrong.
        ValueError: ``vary`` or ``seeds`` is malformed.
        CalledProcessError: a run failed.
    """
    key, separator, listed = vary.partition("=")
    values = [yaml.safe_load(value) for value in listed.split(",")]
    if not separator or not listed:
        raise ValueError(f"--vary wants KEY=A,B,..., not {vary!r}")
    numbers = [int(seed) for seed in seeds.split(",")]
    load_config(config)
    raw = yaml.safe_load(config.read_text(encoding="utf-8"))
    planned = [(value, seed, _write(raw, key, value, seed, runs)) for value in values for seed in numbers]
    for _, _, file in planned:
        load_config(file)
    scores: dict[Any, list[dict[str, float]]] = {value: [] for value in values}
    for value, seed, file in planned:
        print(f"{key} = {value}, seed {seed}", file=sys.stderr)
        folder = file.with_suffix("")
        command = [sys.executable, "-m", "training.train", str(file), "--run", str(folder)]
        subprocess.run(command, check=True, cwd=CHECKOUT, stdout=sys.stderr)
        last = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()[-1]
        scores[value].append({"seed": seed, **{metric: json.loads(last)[metric] for metric in METRICS}})
    return {
        **describe_environment(numbers[0]),
        "experiment": raw,
        "varied": key,
        "split": "dev",
        "results": [{"value": value, **_summary(runs), "runs": runs} for value, runs in scores.items()],
    }


def _write(raw: dict[str, Any], key: str, value: Any, seed: int, runs: Path) -> Path:
    """The experiment with its option and seed, as a file."""
    experiment = json.loads(json.dumps(raw))  # a copy of plain keys and values
    place = experiment
    *parents, name = key.split(".")
    for parent in parents:
        place = place.setdefault(parent, {})
    place[name] = value
    experiment["seed"] = seed
    experiment["name"] = f"{raw.get('name', 'run')}-{name}-{value}-seed-{seed}"
    runs.mkdir(parents=True, exist_ok=True)
    file = runs / f"{experiment['name']}.yaml"
    file.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
    return file


def _summary(runs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Mean and sample standard deviation over the seeds."""
    return {
        metric: {
            "mean": round(statistics.fmean(run[metric] for run in runs), 4),
            "deviation": round(statistics.stdev(run[metric] for run in runs), 4) if len(runs) > 1 else 0.0,
        }
        for metric in METRICS
    }


if __name__ == "__main__":
    sys.exit(main())
