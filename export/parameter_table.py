"""Where a captioner's graphs hold its parameters; :mod:`training.engine.bundle_captioner` reads them back."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from export.trace import TracedCaptioner
from export.weights import values_of
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.engine.buffers import released_tensors, synchronised_buffers
from training.engine.bundle_captioner import EXCLUDED, Place
from training.models.captioner import Captioner

Array = NDArray[np.float32]
_FEWEST = 4
"""Fewest values of a parameter that is recognised as a part of a constant, or multiplied by a factor."""
_FIRST_VALUES = 8  # compared before all others


def parameter_table(captioner: Captioner, traced: TracedCaptioner, end_penalty: float = 0.0) -> dict[str, Place]:
    """Return the first place of each parameter (:func:`parameter_places`), without parameters that have none."""
    found: dict[str, Place] = {}
    for name, place in parameter_places(captioner, traced, end_penalty):
        found.setdefault(name, place)
    return {name: found[name] for name in released_tensors(captioner) if name in found}


def parameter_places(
    captioner: Captioner, traced: TracedCaptioner, end_penalty: float = 0.0
) -> Iterator[tuple[str, Place]]:
    """Find the constants that hold the values of each parameter, or a multiple of them.

    Parameters of equal values may share a place: reading it gives both.

    Args:
        traced: its graphs in float32. Later passes keep the names of their constants.
        end_penalty: penalty of the end token with which the captioner was traced.

    Yields:
        The parameters' names and their places: several where both graphs compute with a parameter, none where the
        exporter computed something from it.
    """
    changing = {name for name, _ in captioner.named_parameters()}
    changing |= synchronised_buffers(captioner).keys()
    parameters = {
        name: tensor.numpy().reshape(-1)
        for name, tensor in released_tensors(captioner).items()
        if name in changing and tensor.is_floating_point()
    }
    for prefix, piece in (("start/", traced.start), ("step/", traced.step)):
        for tensor in piece.graph.initializer:
            constant = values_of(tensor)
            if constant.dtype != np.float32:
                continue
            penalty = end_penalty if _has_addend(constant, captioner.config.vocabulary_size) else 0.0
            if penalty:
                constant = constant.copy()
                constant[Vocabulary.end_id] = -np.inf
            for name, place in _places(f"{prefix}{tensor.name}", constant, parameters):
                yield name, replace(place, end_penalty=penalty)


def _has_addend(constant: Array, words: int) -> bool:
    """Return whether a constant, such as the bias of the logits, contains what the search adds to the logits."""
    return constant.shape == (words,) and constant[Vocabulary.begin_id] < EXCLUDED


def _places(name: str, constant: Array, parameters: Mapping[str, Array]) -> Iterator[tuple[str, Place]]:
    """Yield the parameters that a constant consists of, one after the other by rows or by columns."""
    fitting = {
        parameter: values
        for parameter, values in parameters.items()
        if len(values) == constant.size or _FEWEST <= len(values) < constant.size
    }
    for transposed in (False, True) if constant.ndim > 1 else (False,):
        flat, offset = (constant.swapaxes(-1, -2) if transposed else constant).reshape(-1), 0
        while offset < len(flat):
            matches = {
                parameter: factor
                for parameter, values in fitting.items()
                if (factor := _factor(flat[offset : offset + len(values)], values))
            }
            if not matches:
                break
            size = max(len(fitting[parameter]) for parameter in matches)
            for parameter, factor in matches.items():
                if len(fitting[parameter]) == size:
                    yield parameter, Place(name, transposed, offset, factor)
            offset += size


def _factor(found: Array, values: Array) -> float:
    """Return the factor between ``values`` and ``found``, leaving out excluded words; 0 if there is none."""
    if found.shape != values.shape:
        return 0.0
    known = found > EXCLUDED
    found, values = found[known], values[known]
    if np.array_equal(found[:_FIRST_VALUES], values[:_FIRST_VALUES]):
        return float(len(found) > 0 and np.array_equal(found, values))
    if len(values) < _FEWEST or not (places := np.flatnonzero(values[:_FIRST_VALUES])).size:
        return 0.0
    factor = found[places[0]] / values[places[0]]
    same = np.allclose(found[:_FIRST_VALUES], values[:_FIRST_VALUES] * factor, rtol=1e-6, atol=0)
    return float(factor) if same and np.allclose(found, values * factor, rtol=1e-6, atol=0) else 0.0
