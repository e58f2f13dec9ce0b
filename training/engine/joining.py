"""One model of several trained captioners: the average of their weights, or an ensemble.

Runs that fine-tune one model with different seeds or photographs end in the same basin of the loss; the mean of their
weights (a model soup: Wortsman et al., ICML 2022) is nearly as good as their ensemble, at the cost of one model.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from training.data.datasets import TRAINED_ON, merge_provenance
from training.engine.buffers import declared_buffers
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError
from training.models.ensemble import Ensemble


def average_captioners(models: Mapping[str, TrainedCaptioner]) -> TrainedCaptioner:
    """Average the weights that learn from captions; the detector is that of the first model.
    ``models``: by a name for error messages; they are not changed.

    Returns:
        A model whose record names the data sets of all models.

    Raises:
        CheckpointError: there are fewer than two, or they differ in family, size, vocabulary or backbone.
    """
    _check_alike(
        models,
        "an average",
        "average runs that began with one model",
        {
            "family or size": [(model.family, model.captioner.config) for model in models.values()],
            "vocabulary": [model.vocabulary for model in models.values()],
            "backbone": [model.backbone_options for model in models.values()],
        },
    )
    average = copy.deepcopy(next(iter(models.values())))
    average.record = _record_of_average([*models.values()])
    modules = [_trained_modules(model) for model in models.values()]
    for target, *sources in zip(_trained_modules(average), *modules, strict=True):
        states = [source.state_dict() for source in sources]
        # Buffers with a policy change in training, and those of two runs do not correspond to each other.
        own = declared_buffers(target)
        mean = {name: _mean([state[name] for state in states]) for name in states[0] if name not in own}
        target.load_state_dict({**target.state_dict(), **mean})
    return average


def join_captioners(models: Mapping[str, TrainedCaptioner]) -> TrainedCaptioner:
    """Join captioners whose visual tokens are the same.
    ``models``: by a name for error messages.

    Returns:
        A captioner of the family ``ensemble`` with the backbone of the first model; its record is that of the first
        model, with the experiments of all as ``members``.

    Raises:
        CheckpointError: there are fewer than two, or they differ in vocabulary, backbone or features.
    """
    first = next(iter(models.values()))
    _check_alike(
        models,
        "an ensemble",
        "an ensemble's members see the same visual tokens and say the same words",
        {
            "vocabulary": [model.vocabulary for model in models.values()],
            "backbone": [model.backbone_options for model in models.values()],
            "weights of the backbone": [_same_backbone(first, model) for model in models.values()],
            "features": [model.record.get("features") for model in models.values()],
        },
    )
    try:
        captioner = Ensemble.of({name: (model.family, model.captioner) for name, model in models.items()})
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    record = {key: value for key, value in first.record.items() if key != "dev"}
    record["name"] = f"ensemble of {len(models)}: {', '.join(model.record['name'] for model in models.values())}"
    record["experiment"] = {**first.record["experiment"], "name": record["name"], "start_from": ""}
    record["members"] = [
        {
            "name": model.record["name"], "family": model.family, "experiment": model.record["experiment"],
            TRAINED_ON: model.caption_provenance,
        }
        for model in models.values()
    ]  # fmt: skip
    return TrainedCaptioner("ensemble", captioner, first.backbone, first.vocabulary, record, first.search)


def _check_alike(
    models: Mapping[str, TrainedCaptioner], result: str, remedy: str, facts: Mapping[str, Sequence[object]]
) -> None:
    """Check that there are two models or more, and that each of the facts, which are lists with one value a model, is
    the same of all.
    """
    if len(models) < 2:
        raise CheckpointError(f"{result} is of two different models at least")
    first, *others = models
    for place, name in enumerate(others, 1):
        for what, values in facts.items():
            if values[place] != values[0]:
                raise CheckpointError(f"{name} and {first} differ in their {what}; {remedy}")


def _trained_modules(model: TrainedCaptioner) -> list[nn.Module]:
    """List the modules that learn from captions; the detector is not among them."""
    return [model.captioner] if model.backbone is None else [model.captioner, model.backbone.trainable]


def _mean(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    if not tensors[0].is_floating_point():
        return tensors[0]
    return torch.stack([tensor.float() for tensor in tensors]).mean(dim=0).to(tensors[0].dtype)


def _record_of_average(models: Sequence[TrainedCaptioner]) -> dict[str, Any]:
    """Build the record of an average: that of the first model without its scores, with the data sets of all."""
    records = [model.record for model in models]
    record = {key: value for key, value in records[0].items() if key != "dev"}
    record["averaged"] = [
        {"name": own["name"], "seed": own["experiment"].get("seed"), "dev": own.get("dev")} for own in records
    ]
    record[TRAINED_ON] = merge_provenance(*(model.caption_provenance for model in models))
    if "backbone_trained_on" in record:
        record["backbone_trained_on"] = merge_provenance(*(own["backbone_trained_on"] for own in records))
    return record


def _same_backbone(one: TrainedCaptioner, another: TrainedCaptioner) -> bool:
    if one.backbone is None or another.backbone is None or one.backbone_options != another.backbone_options:
        return one.backbone is another.backbone
    theirs = another.backbone.state_dict()
    return all(torch.equal(value, theirs[name]) for name, value in one.backbone.state_dict().items())
