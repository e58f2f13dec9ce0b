"""A bundle read back as a trained captioner, to go on training from what it has learned.

The export transposes weights, joins those of layers that share an input, scales some by powers of two and rounds them.
It writes down where each parameter went (:mod:`export.parameter_table`), so no trace is needed to undo it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from smart_caption_ros.captioning import Bundle, BundleError
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.data.datasets import TRAINED_ON
from training.data.json_files import read_json
from training.decoding import beam_search
from training.engine.buffers import load_released_tensors, released_tensors
from training.engine.trained_captioner import TrainedCaptioner, new_captioner
from training.errors import BackboneError, CheckpointError, DataError
from training.models.captioner import Captioner
from training.vision.bundle_networks import load_bundle_networks
from training.vision.weight_files import read_parameters

PARAMETERS = "parameters.json"
"""File of a bundle: a :class:`Place` for each parameter of the captioner, by the parameter's name."""
EXCLUDED = beam_search.EXCLUDED / 2
"""A bias below it excludes its word from the search; the trained value is lost."""
_NOT_OF_THE_FAMILY = ("family", "backbone", "parameters")
"""Keys of the manifest's ``architecture`` that are no options of the family."""


@dataclass(frozen=True)
class Place:
    """The place of a captioner's parameter in its graph."""

    constant: str
    """Name of a constant of the Loop form."""
    transposed: bool
    """Whether the last two axes of the constant are to be exchanged first."""
    offset: int
    """Index of the parameter's first value in the flattened constant."""
    factor: float
    """Factor by which the graph has multiplied the parameter."""
    end_penalty: float = 0.0
    """Penalty of the end token that the graph has subtracted from its value."""


def load_trained(path: Path) -> TrainedCaptioner:
    """Load a checkpoint, or read a bundle's folder back.

    Raises:
        CheckpointError: the checkpoint is missing or malformed, or the bundle cannot be read back.
    """
    if not path.is_dir():
        return TrainedCaptioner.load(path)
    try:
        return trained_captioner_of(Bundle.load(path))
    except (BackboneError, BundleError) as error:
        raise CheckpointError(str(error)) from None


def trained_captioner_of(bundle: Bundle) -> TrainedCaptioner:
    """Read the captioner and the networks of a bundle back, in float32 and in evaluation mode.

    Weights that the bundle stores in 16 or 8 bits keep what rounding left of them. Words that the search never chooses
    have the smallest bias of all words: the graph has lost theirs.

    Raises:
        BackboneError: the vision graph holds other networks than those of this project.
        CheckpointError: the family is unknown or refuses the manifest's options, or the bundle does not say where its
            captioner's parameters are.
    """
    architecture = bundle.manifest["architecture"]
    options = {name: value for name, value in architecture.items() if name not in _NOT_OF_THE_FAMILY}
    captioner = new_captioner(architecture["family"], options, bundle.path)
    constants = read_parameters(bundle.read_graph(CAPTIONER_GRAPH))
    try:
        weights = weights_of(constants, _places(bundle), captioner)
    except (KeyError, ValueError) as error:
        raise CheckpointError(
            f"{bundle.path / PARAMETERS} does not fit the bundle ({error}); copy the bundle again"
        ) from None
    load_released_tensors(captioner, {**released_tensors(captioner), **weights})
    trained = TrainedCaptioner(
        family=architecture["family"],
        captioner=captioner,
        backbone=load_bundle_networks(bundle.path),
        vocabulary=bundle.vocabulary,
        record=_record(bundle),
        search=bundle.search,
    )
    trained.set_image_size(bundle.preprocessing.size)
    return trained


def _places(bundle: Bundle) -> dict[str, Place]:
    path = bundle.path / PARAMETERS
    if PARAMETERS not in bundle.manifest["files"]:
        raise CheckpointError(
            f"{bundle.path} has no {PARAMETERS}, which says where its graph holds each parameter; give the checkpoint "
            "that it was exported from"
        )
    try:
        return {name: Place(**place) for name, place in read_json(path).items()}
    except (AttributeError, DataError, TypeError) as error:
        raise CheckpointError(f"{path} is malformed ({error}); copy the bundle again") from None


def weights_of(
    constants: Mapping[str, NDArray[Any]], places: Mapping[str, Place], captioner: Captioner
) -> dict[str, Tensor]:
    """Read the weights of a captioner from the constants of its graph.

    Raises:
        KeyError: a constant or a parameter is unknown.
        ValueError: a constant has too few values, or a parameter has no place.
    """
    own = captioner.state_dict()
    weights = {name: _weight(constants, place, own[name].shape) for name, place in places.items()}
    if missing := [name for name, _ in captioner.named_parameters() if name not in weights]:
        raise ValueError(f"it lacks {missing[0]}")
    return weights


def _weight(constants: Mapping[str, NDArray[Any]], place: Place, shape: torch.Size) -> Tensor:
    name = place.constant if place.constant in constants else f"{place.constant}/float16"
    constant = constants[name].astype(np.float32)
    flat = (constant.swapaxes(-1, -2) if place.transposed else constant).reshape(-1)
    values = flat[place.offset : place.offset + shape.numel()] / np.float32(place.factor)
    if place.end_penalty:
        values[Vocabulary.end_id] += place.end_penalty
    excluded = values < EXCLUDED
    if excluded.any():
        values[excluded] = values[~excluded].min()
    return torch.from_numpy(values.reshape(tuple(shape)))


def _record(bundle: Bundle) -> dict[str, Any]:
    """Collect what later runs and exports need to know: the experiment, its scores and all data."""
    training = bundle.manifest["training"]
    record = {
        **training,
        "name": bundle.name,
        "experiment": {**training["experiment"], "name": bundle.name},
        TRAINED_ON: bundle.manifest["trained_on"],
        "backbone_trained_on": bundle.manifest["trained_on"],
    }
    if origins := bundle.manifest.get("detector", {}).get("boxes_by"):
        record["detector"] = {"boxes_by": origins}
    return record
