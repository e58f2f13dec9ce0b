"""The contract of every captioner: what training, search, evaluation and export know of a family.

A family is a subclass of :class:`Captioner` in a file of its own and one line in :data:`training.models.FAMILIES`.
The conformance suite (``tests/training/models/test_conformance.py``) runs over every registered family.

Shapes: B images, N visual tokens, G sequences an image (its captions in teacher forcing, its beams in decoding),
T words a sequence, V vocabulary size, S words that were decoded before, over all sequences of an image, Q nodes of a
prefix tree.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.configs.ranges import PositiveInt, check_ranges

PADDING_ID = Vocabulary.padding_id
"""Id of the padding word, the same in every vocabulary."""


class Visual(NamedTuple):
    """The visual input of a captioner for B images."""

    tokens: Tensor
    """(B, N, token_width) float: grid cells or regions; float16 as a feature store has them."""
    mask: Tensor | None = None
    """(B, N) bool, True where a token is real; None when all are."""
    boxes_xyxy: Tensor | None = None
    """(B, N, 4) float32, each token's box as fractions of the image's width and height, which may be empty;
    None where unknown. The boxes of padding are zeros."""


class Rows(NamedTuple):
    """A leaf of the decoder's state with one row a sequence; beam search reorders the rows by parent."""

    values: Tensor
    """(B, G, ...)"""


class SlotBuffer:
    """Memory of :class:`Slots` with room for more slots."""

    def __init__(self, values: Tensor, axis: int, capacity: int) -> None:
        shape = list(values.shape)
        shape[axis], self.used = capacity, values.shape[axis]
        self.memory = values.new_empty(shape)
        self.memory.narrow(axis, 0, self.used).copy_(values)


class Slots(NamedTuple):
    """A leaf of the decoder's state to which every decoded word of every sequence appends one slot.

    Slots are never reordered: ``past`` of :meth:`Captioner.decode` says which of them precede a sequence's next word.
    The slot axis is the family's choice, the same in every step.
    """

    values: Tensor
    """(B, ..., S, ...)"""
    buffer: SlotBuffer | None = None
    """The memory that ``values`` is a view of; None where slots have not been appended in place."""

    def append(self, new: Tensor, axis: int) -> "Slots":
        """Append slots.

        Without gradients they are written into memory with spare room, so that earlier slots are not copied at every
        word. Slots that were appended to the same leaf before remain valid.
        ``new``: as ``values``, with any number of slots.
        """
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            # An exported graph is for any number of slots, none included.
            if not torch.compiler.is_exporting() and not self.values.shape[axis]:
                return Slots(new)
            return Slots(torch.cat([self.values, new], dim=axis))
        count, total = self.values.shape[axis], self.values.shape[axis] + new.shape[axis]
        buffer = self.buffer
        # Another continuation of this leaf may have used the room behind it.
        if buffer is None or buffer.used != count or buffer.memory.shape[axis] < total:
            buffer = SlotBuffer(self.values.to(new.dtype), axis, 2 * total)
        buffer.memory.narrow(axis, count, total - count).copy_(new)
        buffer.used = total
        return Slots(buffer.memory.narrow(axis, 0, total), buffer)


Encoded: TypeAlias = Any
"""Any tree (tuples, lists, dicts, None) of tensors with the batch as their first axis: computed once an image."""
State: TypeAlias = Any
"""Any tree (tuples, lists, dicts, None) whose leaves are :class:`Rows` or :class:`Slots`."""


class Step(NamedTuple):
    """Result of :meth:`Captioner.decode`."""

    logits: Tensor
    """(B, G, T, V); position t predicts word t + 1."""
    attention: Tensor | None
    """(B, G, T, N) float, attention weight of each visual token for each word; sums to 1 over the tokens. May be None
    where the caller does not ask for it."""
    state: State
    """The state after these words."""


class PrefixTree(NamedTuple):
    """The captions of B images for teacher forcing, with a node for each different prefix of an image's captions.

    Captions of an image often begin with the same words, and captions differ in length: a tree has far fewer nodes
    than the padded captions have words. :func:`training.data.prefix_trees.prefix_trees` makes it. Every prefix begins
    with the begin token and has a next word.
    """

    words: Tensor
    """(B, Q) int64, last word of each prefix; padding where an image has fewer than Q nodes."""
    positions: Tensor
    """(B, Q) int64, number of words before it."""
    visible: Tensor
    """(B, Q, Q) bool, True where the second node is a prefix of the first; a node is a prefix of itself."""
    captions: Tensor
    """(B, G, T) int64, the captions without their last words, padded."""
    occurrence: Tensor
    """(B, Q) int64, g * T + t of a word in ``captions`` that ends the prefix; 0 for padding."""


class BufferPolicy(NamedTuple):
    """The treatment of a captioner's buffer in training and in checkpoints."""

    synchronise: bool = False
    """Whether the first process' value is sent to all processes after every hook."""
    release: bool = True
    """Whether the file of a trained captioner contains it; otherwise the checkpoint of a run alone does, and moving
    averages of the weights leave it out."""


@dataclass(frozen=True)
class HookContext:
    """The place in the training run, for :meth:`Captioner.on_step`."""

    phase: str
    """Name of the phase."""
    epoch: int
    """Epochs of the phase that are done."""
    step: int
    """Steps of the epoch that are done."""
    steps_per_epoch: int
    random: np.random.Generator
    """Generator that depends on the seed and the place in the run alone: equal in all processes and after a resume."""
    is_first: bool = True
    """Whether this is the first process, whose synchronised buffers are sent to all others after the hook."""


WORD_TABLES = ("word_embedding.weight", "word_projection.weight", "word_projection.bias", "word_vectors", "has_vector")
"""Ends of the names of a captioner's tensors with a row for each word of the vocabulary; the last two are buffers."""


@dataclass(frozen=True)
class CaptionerConfig:
    """The fields that the configuration of every family has; a family adds its own hyper-parameters.

    Raises:
        ValueError: a value has another type or is out of range; the message names it.
    """

    vocabulary_size: PositiveInt
    token_width: PositiveInt
    """Width of a visual token."""

    def __post_init__(self) -> None:
        check_ranges(self)


class Captioner(nn.Module):
    """Base class of the model families.

    Its tensors with a row for each word of the vocabulary have the names of :data:`WORD_TABLES`.
    """

    Config: ClassVar[type[CaptionerConfig]] = CaptionerConfig
    needs_boxes: ClassVar[bool] = False
    """Whether :meth:`encode` reads ``Visual.boxes_xyxy``."""
    buffer_policies: ClassVar[Mapping[str, BufferPolicy]] = {}
    """Policies by the buffer's name in ``named_buffers()``; other buffers have the default, ``BufferPolicy()``."""

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        self.config = config

    @property
    def max_words(self) -> int | None:
        """Longest sequence of words that can be decoded, begin token included; None where there is no limit."""
        return None

    def word_tables(self) -> dict[str, Tensor]:
        """Return the tensors with a row for each word of the vocabulary, by their names in the state dict."""
        return {name: table for name, table in self.state_dict().items() if name.endswith(WORD_TABLES)}

    @property
    def thing_count(self) -> int:
        """Number of things whose presence :meth:`thing_logits` predicts; 0 where the captioner predicts none."""
        return 0

    def thing_logits(self, visual: Visual) -> Tensor:
        """Compute the logits of the presence of things in the images, (B, thing_count)."""
        raise NotImplementedError

    @property
    def word_vector_width(self) -> int:
        """Width of the pretrained word vectors that :meth:`set_word_vectors` takes; 0 where the captioner has none."""
        return 0

    def set_word_vectors(self, vectors: Tensor, known: Tensor) -> None:
        """Set the vectors that represent words.

        Args:
            vectors: (V, word_vector_width) float32.
            known: (V,) bool, True where a word has a vector; the others are learnt.
        """
        raise NotImplementedError

    def encode(self, visual: Visual) -> Encoded:
        """Compute everything that decoding needs of the images; called once for all sequences of an image."""
        raise NotImplementedError

    def initial_state(self, encoded: Encoded, sequences: int) -> State:
        """Make the state before the begin token, for ``sequences`` sequences an image; slots are empty (S = 0)."""
        raise NotImplementedError

    def decode(
        self,
        words: Tensor,
        position: Tensor | int,
        past: Tensor,
        state: State,
        encoded: Encoded,
        *,
        attention: bool = True,
    ) -> Step:
        """Decode the next T >= 1 words of every sequence; teacher forcing and beam search both call this method.

        Args:
            words: (B, G, T) int64. A sequence begins with the begin token; padding may follow its end.
            position: () int64, how many words of each sequence precede ``words``: 0 at the begin token.
            past: (B, G, S) bool, True where one of the S words decoded before precedes a sequence's next word. Slots
                are in this order. S is 0 at the begin token. Families without :class:`Slots` need not read it.
            state: from :meth:`initial_state` or the previous step, its :class:`Rows` reordered by the search.
            attention: False: the attention weights are not needed, and a family may leave them out.

        Returns:
            Logits, attention and the state with T * G more slots: sequence by sequence, word by word within each.
        """
        raise NotImplementedError

    def decode_tree(self, tree: PrefixTree, encoded: Encoded) -> Tensor:
        """Compute the logits of the word after each prefix: (B, Q, V).

        The default decodes the padded captions; :class:`ParallelCaptioner` decodes each node once.
        """
        logits = self.decode_captions(tree.captions, encoded)
        return logits.flatten(1, 2).gather(1, tree.occurrence[..., None].expand(-1, -1, logits.shape[-1]))

    def decode_captions(self, words: Tensor, encoded: Encoded) -> Tensor:
        """Compute the logits of whole captions.
        ``words``: (B, G, T) int64, every caption's begin token and words, padded.

        Returns:
            (B, G, T, V) logits; position t predicts word t + 1.
        """
        batch, group, _ = words.shape
        nothing = torch.zeros(batch, group, 0, dtype=torch.bool, device=words.device)
        return self.decode(words, 0, nothing, self.initial_state(encoded, group), encoded, attention=False).logits

    def forward(self, visual: Visual, tree: PrefixTree) -> Tensor:
        """Compute the logits of teacher forcing.
        ``visual``: of B images; an image is encoded once for all its captions.

        Returns:
            (B, Q, V) logits of the word after each prefix.
        """
        return self.decode_tree(tree, self.encode(visual))

    def on_step(self, context: HookContext) -> None:
        """Prepare for a training step; called before each one. The default does nothing."""


def join_sequences(x: Tensor) -> Tensor:
    """Join the sequence and word axes: (B, G, T, ...) -> (B, G * T, ...), in the order of :class:`Slots`."""
    # T = 1 is squeezed instead of reshaped, so that it cancels out with split_sequences in exported graphs.
    return x.squeeze(2) if x.shape[2] == 1 else x.flatten(1, 2)


def split_sequences(x: Tensor, words: int) -> Tensor:
    """Undo :func:`join_sequences`: (B, G * T, ...) -> (B, G, T, ...), ``words`` being T."""
    return x.unsqueeze(2) if words == 1 else x.unflatten(1, (-1, words))


def visible_slots(past: Tensor, words: int) -> Tensor:
    """Compute the slots that each of the next words may attend to, after :meth:`Captioner.decode` has appended theirs.

    Args:
        past: (B, G, S) bool, as :meth:`Captioner.decode` takes it.
        words: T, how many words a sequence gets in this call.

    Returns:
        (B, G * T, S + G * T) bool, sequence by sequence. True for a sequence's past and, among the new slots, for its
        own up to and including the word itself.
    """
    batch, group, _ = past.shape
    own = torch.eye(group, dtype=torch.bool, device=past.device)
    if words > 1:
        past = past.repeat_interleave(words, dim=1)
        own = torch.kron(own, own.new_ones(words, words).tril())
    return torch.cat([past, own.expand(batch, -1, -1)], dim=2)


def map_state(state: State, rows: Callable[[Tensor], Tensor], slots: Callable[[Tensor], Tensor] | None = None) -> State:
    """Apply ``rows`` to the tensors of a state's :class:`Rows` and ``slots`` to those of its :class:`Slots`.
    ``slots``: new values of a leaf; None: slots stay as they are.

    Returns:
        A state of the same structure.

    Raises:
        TypeError: the state has a leaf that is neither.
    """
    if isinstance(state, Rows):
        return Rows(rows(state.values))
    if isinstance(state, Slots):
        return Slots(slots(state.values)) if slots else state
    if state is None:
        return None
    if isinstance(state, Mapping):
        return {name: map_state(value, rows, slots) for name, value in state.items()}
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(map_state(value, rows, slots) for value in state))
    if isinstance(state, list | tuple):
        return type(state)(map_state(value, rows, slots) for value in state)
    raise TypeError(f"a decoder's state is a tree of Rows and Slots; found {type(state).__name__}")


def reorder_rows(state: State, parents: Tensor) -> State:
    """Replace each row of a state by the row of its parent.
    ``parents``: (B, G) int64, index of the sequence of the image that each sequence continues.
    """
    batch, group = parents.shape
    rows = (parents + torch.arange(batch, device=parents.device)[:, None] * group).flatten()

    def reorder(values: Tensor) -> Tensor:
        return values.flatten(0, 1).index_select(0, rows).unflatten(0, (batch, group))

    return map_state(state, reorder)


class ParallelCaptioner(Captioner):
    """Base class of the families in which words see earlier words by attention alone: all words of all captions of an
    image are decoded at once, and the state has :class:`Slots` alone.
    """

    def decode_words(
        self, words: Tensor, positions: Tensor, visible: Tensor, state: State, encoded: Encoded, *, attention: bool
    ) -> tuple[Tensor, Tensor | None, State]:
        """Decode Q words of each image.

        Args:
            words: (B, Q) int64.
            positions: (Q,) or (B, Q) int64, how many words of its sequence precede each.
            visible: (B, Q, S + Q) bool, True where a word sees one of the S words of the state or of these words.
            attention: False: the attention weights are not needed.

        Returns:
            The logits (B, Q, V); the attention (B, Q, N), or None; the state with S + Q slots.
        """
        raise NotImplementedError

    def decode(
        self,
        words: Tensor,
        position: Tensor | int,
        past: Tensor,
        state: State,
        encoded: Encoded,
        *,
        attention: bool = True,
    ) -> Step:
        _, group, length = words.shape
        positions = position + torch.arange(length, device=words.device)
        logits, weights, state = self.decode_words(
            join_sequences(words),
            positions if length == 1 else positions.repeat(group),
            visible_slots(past, length),
            state,
            encoded,
            attention=attention,
        )
        return Step(
            split_sequences(logits, length), None if weights is None else split_sequences(weights, length), state
        )

    def decode_tree(self, tree: PrefixTree, encoded: Encoded) -> Tensor:
        state = self.initial_state(encoded, 1)
        return self.decode_words(tree.words, tree.positions, tree.visible, state, encoded, attention=False)[0]
