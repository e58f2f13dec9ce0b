"""Join trained captioners to an ensemble: one model with their vocabulary and visual tokens."""

from collections.abc import Mapping

import torch

from training.data.datasets import TRAINED_ON
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError
from training.models.ensemble import Ensemble


def join_captioners(models: Mapping[str, TrainedCaptioner]) -> TrainedCaptioner:
    """Join captioners whose visual tokens are the same.

    Args:
        models: by a name for error messages.

    Returns:
        A captioner of the family ``ensemble`` with the backbone of the first model; its record is that of the first
        model, with the experiments of all as ``members``.

    Raises:
        CheckpointError: there are fewer than two, or they differ in vocabulary, backbone or features.
    """
    if len(models) < 2:
        raise CheckpointError("an ensemble is of two different models at least")
    (first_name, first), *others = models.items()
    for name, other in others:
        for what, same in (
            ("vocabulary", first.vocabulary == other.vocabulary),
            ("backbone", first.backbone_options == other.backbone_options and _same_backbone(first, other)),
            ("features", first.record.get("features") == other.record.get("features")),
        ):
            if not same:
                raise CheckpointError(
                    f"{name} and {first_name} differ in their {what}; an ensemble's members see the same visual tokens "
                    "and say the same words"
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


def _same_backbone(one: TrainedCaptioner, another: TrainedCaptioner) -> bool:
    if one.backbone is None or another.backbone is None:
        return one.backbone is another.backbone
    theirs = another.backbone.state_dict()
    return all(torch.equal(value, theirs[name]) for name, value in one.backbone.state_dict().items())
