"""Checkpoints: one safetensors file, its JSON state in the header, written under another name and renamed.

No pickle is written or read. A kill at any moment leaves the last complete file.
"""

import json
import struct
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from smart_caption_ros.files import replaced_atomically
from training.errors import CheckpointError

_SIZE = struct.Struct("<Q")
"""First bytes of a safetensors file: the length of its JSON header."""


def save_checkpoint(path: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write atomically: ``path`` is either the old file or the complete new one.

    Raises:
        CheckpointError: the disk is full, or the file cannot be written for another reason.
    """
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    with replaced_atomically(path) as unfinished:
        unfinished.touch()
        ordinary_mode = unfinished.stat().st_mode  # safetensors makes files that their owner alone may read
        try:
            save_file(contiguous, unfinished, metadata={"state": json.dumps(state)})
        except SafetensorError as error:
            raise CheckpointError(f"{path} cannot be written ({error}); the last complete file is as it was") from None
        unfinished.chmod(ordinary_mode)


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read tensors and state of :func:`save_checkpoint`, while a run may be replacing the file.

    Raises:
        CheckpointError: the file is missing, truncated or not a checkpoint.
    """
    try:
        # The file is read once: safe_open opens the path twice, and a run may replace the file in between.
        whole = path.read_bytes()
        tensors = load(whole)
        header = json.loads(whole[_SIZE.size : _SIZE.size + _SIZE.unpack_from(whole)[0]])
        state = json.loads(header["__metadata__"]["state"])
    except (OSError, SafetensorError, KeyError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a readable checkpoint ({error})") from None
    if not isinstance(state, dict):
        raise CheckpointError(f"{path} is not a readable checkpoint (its state is no object)")
    return tensors, state


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Prepend ``prefix.`` to every name."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def under_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Select the tensors whose name begins with ``prefix.``, and remove it."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimizer's state as named tensors, ``<parameter index>.<name>``."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": torch.as_tensor(value) for index, values in state.items() for name, value in values.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Load the state that :func:`optimizer_tensors` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
