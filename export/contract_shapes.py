"""Names, types and shapes of the tensors that a captioner computes once per image and carries from word to word.

They are measured: a captioner is run through its contract (:mod:`training.models.captioner`) on several sizes, and an
axis that changes with one of them is dynamic. The export knows nothing else of a family.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from export.torch_to_onnx import BATCH, SLOTS, STEPS, TOKENS, Size, TensorSpec
from smart_caption_ros.captioning.bundle import VISUAL_INPUTS
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.models.captioner import Captioner, Rows, Slots, Visual

IMAGE_TOKENS, TOKEN_MASK, TOKEN_BOXES, _ = VISUAL_INPUTS
"""Inputs of a captioner graph: the fields of :class:`Visual`."""


def visual_inputs(captioner: Captioner) -> dict[str, TensorSpec]:
    """Return the inputs of a captioner's graph by name: tokens and their mask, and boxes if it needs them."""
    batch, tokens = Size(BATCH), Size(TOKENS)
    inputs = {
        IMAGE_TOKENS: TensorSpec(torch.float32, (batch, tokens, captioner.config.token_width)),
        TOKEN_MASK: TensorSpec(torch.bool, (batch, tokens)),
    }
    if captioner.needs_boxes:
        inputs[TOKEN_BOXES] = TensorSpec(torch.float32, (batch, tokens, 4))
    return inputs


def visual_of(inputs: Mapping[str, Tensor]) -> Visual:
    """Return the inputs of a captioner's graph as :class:`Visual`."""
    return Visual(inputs[IMAGE_TOKENS], inputs[TOKEN_MASK], inputs.get(TOKEN_BOXES))


class TensorTree:
    """The structure of a tree of tensors, or of Rows and Slots, with a name for each leaf.

    Args:
        tree: :data:`Encoded` or :data:`State`.
        prefix: beginning of the names.

    Raises:
        ValueError: a leaf is something else.
    """

    def __init__(self, tree: Any, prefix: str) -> None:
        leaves, self._spec = pytree.tree_flatten_with_path(tree, is_leaf=_is_leaf)
        self._kinds = [_kind(leaf) for _, leaf in leaves]
        self.names: list[str] = []
        self.slots: set[str] = set()
        """Names of the :class:`Slots`."""
        self.rows: set[str] = set()
        """Names of the :class:`Rows`."""
        for (path, leaf), kind in zip(leaves, self._kinds, strict=True):
            if kind is None:
                continue
            name = re.sub(r"\W+", "_", f"{prefix}{pytree.keystr(path)}").strip("_")
            while name in self.names:
                name += "_"
            if not isinstance(leaf, Rows | Slots | Tensor):
                raise ValueError(f"{name} is of type {type(leaf).__name__}, not a tensor")
            self.names.append(name)
            if kind in (Rows, Slots):
                (self.slots if kind is Slots else self.rows).add(name)

    def flatten(self, tree: Any) -> dict[str, Tensor]:
        """Return the tensors by name.

        Raises:
            ValueError: the tree has another structure.
        """
        leaves, spec = pytree.tree_flatten(tree, is_leaf=_is_leaf)
        if spec != self._spec or [_kind(leaf) for leaf in leaves] != self._kinds:
            raise ValueError(f"the tree of {', '.join(self.names)} has another structure in another step")
        tensors = (leaf.values if isinstance(leaf, Rows | Slots) else leaf for leaf in leaves if leaf is not None)
        return dict(zip(self.names, tensors, strict=True))

    def unflatten(self, tensors: Mapping[str, Tensor]) -> Any:
        """Return the tree with the tensors of these names."""
        values = (tensors[name] for name in self.names)
        leaves = [
            None if kind is None else kind(next(values)) if kind in (Rows, Slots) else next(values)
            for kind in self._kinds
        ]
        return pytree.tree_unflatten(leaves, self._spec)


def _is_leaf(node: Any) -> bool:
    return isinstance(node, Rows | Slots)


def _kind(leaf: Any) -> type | None:
    if leaf is None:
        return None
    return type(leaf) if isinstance(leaf, Rows | Slots) else Tensor


@dataclass(frozen=True)
class ContractShapes:
    """What :func:`measure` finds."""

    encoded: TensorTree
    state: TensorTree
    specs: Mapping[str, TensorSpec]
    """Types and shapes of every tensor of both trees, by name."""

    def slot_axis(self, name: str) -> int | None:
        """Return the axis of a tensor that grows with every word; None where there is none."""
        axes = [axis for axis, size in enumerate(self.specs[name].shape) if isinstance(size, Size)]
        return next((axis for axis in axes if self.specs[name].shape[axis].symbol == SLOTS), None)  # type: ignore[union-attr]


_BASE = {BATCH: 3, TOKENS: 11, STEPS: 2}
"""Sizes of the first run; in each of the others one of them is larger."""


def measure(captioner: Captioner, beam_size: int) -> ContractShapes:
    """Run a captioner on several numbers of images, tokens and words and compare the shapes.

    Raises:
        ValueError: the captioner breaks the contract; the message says how.
    """
    encoded, state, shapes, dtypes = _run(captioner, beam_size, _BASE)
    changes = {symbol: _run(captioner, beam_size, {**_BASE, symbol: size + 2})[2] for symbol, size in _BASE.items()}
    specs = {
        name: TensorSpec(
            dtypes[name],
            tuple(
                _size(name, size, {symbol: other[name][axis] - size for symbol, other in changes.items()}, beam_size)
                for axis, size in enumerate(shape)
            ),
        )
        for name, shape in shapes.items()
    }
    found = ContractShapes(encoded, state, specs)
    for name in specs:
        if specs[name].shape[:1] != (Size(BATCH),):
            raise ValueError(f"the first axis of {name} is not the batch")
        if name in state.rows and specs[name].shape[1:2] != (beam_size,):
            raise ValueError(f"the second axis of {name}, a leaf of Rows, is not the sequences of an image")
        axis = found.slot_axis(name)
        if name in state.slots and (axis is None or specs[name].shape[axis] != Size(SLOTS)):
            raise ValueError(f"{name}, a leaf of Slots, does not grow by one slot a word")
        if name not in state.slots and axis is not None:
            raise ValueError(f"{name} grows with every word but is not a leaf of Slots")
    return found


def _run(
    captioner: Captioner, beam_size: int, sizes: Mapping[str, int]
) -> tuple[TensorTree, TensorTree, dict[str, tuple[int, ...]], dict[str, torch.dtype]]:
    """Return both trees, and the shapes and types of their tensors after ``sizes[STEPS]`` words.

    Raises:
        ValueError: the state before the first word differs from that after it in more than its slots.
    """
    batch = sizes[BATCH]
    inputs = {name: spec.example(sizes) for name, spec in visual_inputs(captioner).items()}
    words = torch.full((batch, beam_size, 1), Vocabulary.begin_id)
    own = torch.eye(beam_size, dtype=torch.bool).expand(batch, -1, -1)
    past = own[:, :, :0]
    with torch.no_grad():
        encoded = captioner.encode(visual_of(inputs))
        state = captioner.initial_state(encoded, beam_size)
        encoded_tree, state_tree = TensorTree(encoded, "encoded"), TensorTree(state, "state")
        first = state_tree.flatten(state)
        for position in range(sizes[STEPS]):
            state = captioner.decode(words, torch.tensor(position), past, state, encoded).state
            past = torch.cat([past, own], dim=2)
    last = state_tree.flatten(state)
    for name in first:
        same_axes = [a == b for a, b in zip(first[name].shape, last[name].shape, strict=False)]
        if (
            first[name].dtype != last[name].dtype
            or first[name].ndim != last[name].ndim
            or same_axes.count(False) > (name in state_tree.slots)
        ):
            raise ValueError(
                f"{name} is {tuple(first[name].shape)} {first[name].dtype} before the first word and "
                f"{tuple(last[name].shape)} {last[name].dtype} after {sizes[STEPS]}"
            )
    tensors = {**encoded_tree.flatten(encoded), **last}
    return (
        encoded_tree,
        state_tree,
        {name: tuple(tensor.shape) for name, tensor in tensors.items()},
        {name: tensor.dtype for name, tensor in tensors.items()},
    )


def _size(name: str, size: int, changes: Mapping[str, int], beam_size: int) -> int | Size:
    """Return the size of an axis, derived from how much it changes when a symbol grows by 2.

    Raises:
        ValueError: the size is no linear function of one symbol.
    """
    changed = [symbol for symbol, change in changes.items() if change]
    if not changed:
        return size
    (symbol, *others) = changed
    per_symbol = beam_size if symbol == STEPS else 1
    factor, rest = divmod(changes[symbol], 2 * per_symbol)
    if others or rest:
        raise ValueError(f"a size of {name} is no multiple of one of {', '.join(changed)}")
    value = _BASE[symbol] * per_symbol
    return Size(SLOTS if symbol == STEPS else symbol, factor, size - factor * value)
