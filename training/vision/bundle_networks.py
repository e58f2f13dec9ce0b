"""The networks of a bundle's vision graph, to go on training from what a bundle has learned.

The export keeps the names of the parameters, so a bundle holds its networks under the names of their state dict.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from smart_caption_ros.captioning.bundle import VISION_GRAPH, Bundle, BundleError
from training.errors import BackboneError
from training.vision.backbone import Backbone
from training.vision.inverted_residuals import GRIDS, InvertedResiduals
from training.vision.side_by_side import SideBySide, side_by_side
from training.vision.weight_files import read_parameters

PREFIX = "module.backbone."
"""Before the names of the parameters in a vision graph."""


def load_bundle_networks(folder: Path) -> Backbone:
    """Construct the networks of a bundle: a grid backbone, or several side by side.
    ``folder``: the bundle; weights that it stores in fewer bits become float32.

    Raises:
        BackboneError: the folder is not a bundle, or its vision graph holds other networks than ours.
    """
    try:
        bundle = Bundle.load(folder)
    except BundleError as error:
        raise BackboneError(str(error)) from None
    found = {
        name.removeprefix(PREFIX): torch.from_numpy(values.copy())
        for name, values in read_parameters(bundle.read_graph(VISION_GRAPH)).items()
        if name.startswith(PREFIX)
    }
    backbone = _construct(found, bundle)
    if backbone is None:
        raise BackboneError(f"{folder}: its vision graph does not hold all parameters of {' or '.join(GRIDS)}")
    backbone.load_state_dict({name: found[name] for name in backbone.state_dict()})
    for grid in backbone.grids if isinstance(backbone, SideBySide) else [backbone]:
        assert isinstance(grid, InvertedResiduals)
        # The export has reordered the first convolution for BGR (InvertedResiduals.fold_channel_order).
        first = grid.convolutions()[0].weight
        first.data = first.data.flip(1)
    return backbone.eval()


def _construct(parameters: Mapping[str, Tensor], bundle: Bundle) -> Backbone | None:
    """Construct the networks whose parameters have these names and shapes; None if there are none such."""
    shapes = {name: values.shape for name, values in parameters.items()}
    if kind := _kind_of_grid(shapes, ""):
        return GRIDS[kind]()
    indices = {name.split(".")[1] for name in shapes if name.startswith("grids.")}
    kinds = [_kind_of_grid(shapes, f"grids.{index}.") for index in sorted(indices, key=int)]
    if not kinds or None in kinds:
        return None
    classes = bundle.class_names if any(name.startswith("yolox.") for name in shapes) else None
    network = side_by_side([kind for kind in kinds if kind is not None], classes)
    return network if _has_parameters(shapes, "", network) else None


def _kind_of_grid(shapes: Mapping[str, torch.Size], prefix: str) -> str | None:
    return next((kind for kind, grid in GRIDS.items() if _has_parameters(shapes, prefix, grid())), None)


def _has_parameters(shapes: Mapping[str, torch.Size], prefix: str, network: torch.nn.Module) -> bool:
    """Return whether there are all parameters of a network after ``prefix``."""
    return all(shapes.get(prefix + name) == values.shape for name, values in network.state_dict().items())
