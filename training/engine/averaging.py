"""Average the weights of trained captioners (model soups: Wortsman et al., ICML 2022).

Runs that fine-tune one model with different seeds or photographs end in the same basin of the loss; the mean of their
weights is nearly as good as their ensemble, at the cost of one model.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from training.data.datasets import merge_provenance
from training.engine.buffers import declared_buffers
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError


def average_captioners(models: Mapping[str, TrainedCaptioner]) -> TrainedCaptioner:
    """Average the weights that learn from captions; the detector is that of the first model.

    Args:
        models: by a name for error messages; they are not changed.

    Returns:
        A model whose record names the data sets of all models.

    Raises:
        CheckpointError: there are fewer than two, or they differ in family, size, vocabulary or backbone.
    """
    if len(models) < 2:
        raise CheckpointError("an average is of two different models at least")
    (first_name, first), *others = models.items()
    for name, other in others:
        for what, one, another in (
            ("family or size", (first.family, first.captioner.config), (other.family, other.captioner.config)),
            ("vocabulary", first.vocabulary, other.vocabulary),
            ("backbone", first.backbone_options, other.backbone_options),
        ):
            if one != another:
                raise CheckpointError(
                    f"{name} and {first_name} differ in their {what}; average runs that began with one model"
                )
    average = copy.deepcopy(first)
    average.record = _record([*models.values()])
    modules = [_trained_modules(model) for model in models.values()]
    for target, *sources in zip(_trained_modules(average), *modules, strict=True):
        states = [source.state_dict() for source in sources]
        # Buffers with a policy change in training, and those of two runs do not correspond to each other.
        own = declared_buffers(target)
        mean = {name: _mean([state[name] for state in states]) for name in states[0] if name not in own}
        target.load_state_dict({**target.state_dict(), **mean})
    return average


def _trained_modules(model: TrainedCaptioner) -> list[nn.Module]:
    """List the modules that learn from captions; the detector is not among them."""
    return [model.captioner] if model.backbone is None else [model.captioner, model.backbone.trainable]


def _mean(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    if not tensors[0].is_floating_point():
        return tensors[0]
    return torch.stack([tensor.float() for tensor in tensors]).mean(dim=0).to(tensors[0].dtype)


def _record(models: Sequence[TrainedCaptioner]) -> dict[str, Any]:
    """Build the record of an average: that of the first model without its scores, with the data sets of all."""
    records = [model.record for model in models]
    record = {key: value for key, value in records[0].items() if key != "dev"}
    record["averaged"] = [
        {"name": own["name"], "seed": own["experiment"].get("seed"), "dev": own.get("dev")} for own in records
    ]
    if "backbone_trained_on" in record:
        others = [
            entries
            for model in models[1:]
            for entries in (model.caption_provenance, model.record["backbone_trained_on"])
        ]
        record["backbone_trained_on"] = merge_provenance(record["backbone_trained_on"], *others)
    return record
