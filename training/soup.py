"""Average the weights of runs that began with the same ones: ``python -m training.soup BEST ... -o OUT.safetensors``.

A model soup (Wortsman et al., ICML 2022): runs that fine-tune one model with other seeds or photographs end in one
valley, and the mean of their weights lies lower in it than any of them: nearly as good as the ensemble, at the cost of
one model. Each BEST is the ``best.safetensors`` of a run, OUT what ``python -m export`` takes.
"""

import argparse
import copy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from training.commands import exit_status
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError


class SoupError(Exception):
    """Models that cannot be averaged; the message says why."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m training.soup", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path, metavar="BEST", help="best.safetensors of a run")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="safetensors file to write")
    arguments = parser.parse_args()
    return exit_status(lambda: run(arguments), (CheckpointError, SoupError), arguments.output, "stopped")


def run(arguments: argparse.Namespace) -> None:
    """Average, and write.

    Raises:
        CheckpointError: a file is missing or malformed.
        SoupError: the models are not of one kind.
    """
    average({str(path): TrainedCaptioner.load(path) for path in arguments.models}).save(arguments.output)
    print(f"{arguments.output}: the average of {len(arguments.models)} models; score it before it ships")


def average(models: dict[str, TrainedCaptioner]) -> TrainedCaptioner:
    """The mean of the weights that learn from captions, with the facts of all and the detector of the first.

    Args:
        models: by what to call them. They are left as they are.

    Raises:
        SoupError: there are fewer than two, or they differ in family, size, words or in what they see with.
    """
    if len(models) < 2:
        raise SoupError("an average is of two different models at least")
    (first_name, first), *others = models.items()
    for name, other in others:
        for what, one, another in (
            ("family or size", (first.family, first.captioner.config), (other.family, other.captioner.config)),
            ("words", first.vocabulary, other.vocabulary),
            ("backbone", first.backbone_options, other.backbone_options),
        ):
            if one != another:
                raise SoupError(f"{name} has another {what} than {first_name}; average runs that began with one model")
    mixed = copy.deepcopy(first)
    mixed.record = _record(models)
    learning = [_learning(model) for model in models.values()]
    for module, *modules in zip(_learning(mixed), *learning, strict=True):
        states = [each.state_dict() for each in modules]
        module.load_state_dict({name: _mean([state[name] for state in states]) for name in states[0]})
    return mixed


def _learning(model: TrainedCaptioner) -> list[nn.Module]:
    """What learns from captions. A detector is none of it: the first model's stays."""
    return [model.captioner] if model.backbone is None else [model.captioner, model.backbone.trainable]


def _mean(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    if not tensors[0].is_floating_point():
        return tensors[0]
    return torch.stack([tensor.float() for tensor in tensors]).mean(dim=0).to(tensors[0].dtype)


def _record(models: dict[str, TrainedCaptioner]) -> dict[str, Any]:
    """Of the first, without its score, and with the data of all."""
    records = [model.record for model in models.values()]
    record = {key: value for key, value in records[0].items() if key != "dev"}
    record["averaged"] = [
        {"name": each["name"], "seed": each["experiment"].get("seed"), "dev": each.get("dev")} for each in records
    ]
    if "backbone_trained_on" in record:
        data = [*record["backbone_trained_on"]]
        for model in [*models.values()][1:]:
            theirs = [*model.caption_provenance, *model.record["backbone_trained_on"]]
            data += [entry for entry in theirs if entry not in data]
        record["backbone_trained_on"] = data
    return record


if __name__ == "__main__":
    sys.exit(main())
