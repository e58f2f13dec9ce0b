"""The weights of a bundle's captioner, read back from its graph.

The export transposes weights, joins those of layers that share an input, multiplies some by constants and rounds them
(:mod:`export.passes`). To undo it, a captioner with random weights is traced as the bundle's was: a constant of its
graph shows which weights it was made of, because random tensors are never parallel, and the constant of the same name
in the bundle holds the bundle's weights in the same places.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor

from export.bundle import ExportError
from export.passes.simplify import split_gemms
from export.trace import trace_captioner
from smart_caption_ros.captioning.bundle import CAPTIONER_GRAPH, Bundle
from training.decoding.repeats import RepeatPenalty
from training.engine.buffers import averaged_buffers, load_saved_tensors, released_tensors, synchronised_buffers
from training.models import FAMILIES
from training.models.captioner import Captioner
from training.vision.weight_files import read_parameters

Array = NDArray[np.float32]

_PARALLEL = 1 - 1e-6
"""Least cosine of two tensors that are the same up to a factor."""
_FEWEST = 4
"""Smallest number of values by which a weight is recognised."""
_EXCLUDED = -1e8
"""Biases below it exclude words from the search; their own values are lost."""
_NOT_OF_THE_FAMILY = ("family", "backbone", "parameters")
"""Keys of the manifest's ``architecture`` beside the options of the family."""


class _Piece(NamedTuple):
    """A part of a graph's constant that holds a weight."""

    weight: str
    transposed: bool
    first: int
    """Row where it begins, after transposition."""
    rows: int
    factor: float


def load_bundle_captioner(bundle: Bundle) -> Captioner:
    """Construct the captioner of a bundle with its weights, in float32 and in evaluation mode.

    Weights that the bundle stores in 16 or 8 bits keep what rounding left of them. Words that the search never chooses
    have the smallest bias of all words: the graph has lost theirs.

    Raises:
        ExportError: the family is unknown or refuses the manifest's options, its weights cannot be read back, or
            another version of this project or of PyTorch exported the bundle, so that its graph has other constants.
    """
    captioner = _construct(bundle)
    stored = read_parameters(bundle.path / CAPTIONER_GRAPH)
    found: dict[str, Tensor] = {}
    own = _trained_tensors(captioner)
    for name, constant in _constants_of_random_weights(captioner, bundle, own):
        pieces = _pieces(constant, own)
        if not pieces:
            continue
        values = stored.get(name)
        if values is None or values.shape != constant.shape:
            raise ExportError(
                f"{bundle.path}: {CAPTIONER_GRAPH} has no constant {name} of the shape {constant.shape}; it was "
                "exported by another version of this project or of PyTorch (exported_by in its manifest). Use that "
                "version"
            )
        for piece in pieces:
            found.setdefault(piece.weight, torch.from_numpy(_weight_of(values, piece, own[piece.weight].shape)))
    if missing := [name for name in own if name not in found]:
        raise ExportError(
            f"{bundle.path}: the weights {missing[0]} of the family {bundle.manifest['architecture']['family']} cannot "
            f"be read back from its graph ({len(missing)} of {len(own)}); keep the checkpoint of such a captioner"
        )
    load_saved_tensors(captioner, {**released_tensors(captioner), **found})
    return captioner


def _trained_tensors(captioner: Captioner) -> dict[str, Tensor]:
    """Return what training changes and a bundle holds, by name; other buffers are constants of the family."""
    buffers = averaged_buffers(captioner).keys() | synchronised_buffers(captioner).keys()
    changing = {name for name, _ in captioner.named_parameters()} | buffers
    return {
        name: tensor
        for name, tensor in released_tensors(captioner).items()
        if name in changing and tensor.is_floating_point()
    }


def _construct(bundle: Bundle) -> Captioner:
    """Construct a captioner of the bundle's family and size."""
    architecture: Mapping[str, Any] = bundle.manifest["architecture"]
    family = FAMILIES.get(architecture["family"])
    if family is None:
        known = ", ".join(FAMILIES)
        raise ExportError(f"{bundle.path} has the unknown family {architecture['family']!r}; known are {known}")
    options = {name: value for name, value in architecture.items() if name not in _NOT_OF_THE_FAMILY}
    try:
        return family(family.Config(**options)).eval()
    except (TypeError, ValueError) as error:
        raise ExportError(
            f"{bundle.path}: its manifest has options that the family {architecture['family']} refuses: {error}"
        ) from None


def _constants_of_random_weights(
    captioner: Captioner, bundle: Bundle, own: Mapping[str, Tensor]
) -> Iterator[tuple[str, Array]]:
    """Give the weights random values, in place, and list the constants of the traced graph under the bundle's names."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for tensor in own.values():
            tensor.copy_(torch.randn(tensor.shape, generator=generator))
    repeats = RepeatPenalty.of(bundle.vocabulary, bundle.manifest["decoding"].get("repeat_penalty", 0.0))
    traced = trace_captioner(captioner, bundle.beam_size, guided=bundle.can_be_guided, repeats=repeats)
    for prefix, piece in (("start/", traced.start), ("step/", traced.step)):
        for tensor in split_gemms(piece).graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT:
                yield f"{prefix}{tensor.name}", numpy_helper.to_array(tensor)


def _pieces(constant: Array, own: Mapping[str, Tensor]) -> list[_Piece]:
    """Find the weights that a constant consists of, one after the other; none if it is made of anything else."""
    for transposed in (False, True) if constant.ndim == 2 else (False,):
        pieces = _pieces_in_rows(constant.T if transposed else constant, own, transposed)
        if pieces:
            return pieces
    return []


def _pieces_in_rows(rows: Array, own: Mapping[str, Tensor], transposed: bool) -> list[_Piece]:
    pieces: list[_Piece] = []
    first = 0
    while rows.ndim and first < len(rows):
        piece = next((piece for name in own if (piece := _piece(rows, first, name, own[name], transposed))), None)
        if piece is None:
            return []
        pieces.append(piece)
        first += piece.rows
    return pieces


def _piece(rows: Array, first: int, name: str, weight: Tensor, transposed: bool) -> _Piece | None:
    """Return the part of ``rows`` from row ``first`` on if it is ``weight`` times a factor, else None."""
    count = len(weight) if weight.ndim else 1
    if rows.shape[1:] != weight.shape[1:] or first + count > len(rows):
        return None
    part, values = rows[first : first + count].ravel().astype(np.float64), weight.numpy().ravel().astype(np.float64)
    known = part > _EXCLUDED
    part, values = part[known], values[known]
    if len(part) < _FEWEST:
        return None
    product, norms = float(part @ values), float(np.linalg.norm(part) * np.linalg.norm(values))
    if norms == 0 or abs(product) < _PARALLEL * norms:
        return None
    return _Piece(name, transposed, first, count, _exact_power(product / float(values @ values)))


def _exact_power(factor: float) -> float:
    """Return the power of two that ``factor`` is but for the rounding of a sum, else ``factor``."""
    power = float(np.copysign(2.0 ** np.round(np.log2(abs(factor))), factor))
    return power if abs(factor / power - 1) < 1e-5 else factor


def _weight_of(constant: Array, piece: _Piece, shape: torch.Size) -> Array:
    """Return the weight that a piece of the bundle's constant holds, of its own shape."""
    rows = constant.T if piece.transposed else constant
    values = rows[piece.first : piece.first + piece.rows].astype(np.float32) / np.float32(piece.factor)
    excluded = rows[piece.first : piece.first + piece.rows] <= _EXCLUDED
    if excluded.any():
        values[excluded] = values[~excluded].min()
    return np.ascontiguousarray(values.reshape(shape))
