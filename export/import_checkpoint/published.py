"""Published checkpoints: a file of named tensors and a list of words, both mapped to ours by a format."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.data.json_files import read_json
from training.models import FAMILIES
from training.models.captioner import Captioner, CaptionerConfig

Config = TypeVar("Config", bound=CaptionerConfig)


class ImportCheckpointError(Exception):
    """A published checkpoint cannot be imported; the message names the file and the first parameter that differs."""


def _unchanged(value: Tensor) -> Tensor:
    return value


class Source(NamedTuple):
    """The published tensor that gives the value of one of our parameters, or of one row of it."""

    ours: str
    """Name of our parameter or buffer."""
    theirs: str
    """Published name."""
    convert: Callable[[Tensor], Tensor] = _unchanged
    """Computes our value from the published one."""
    row: int | None = None
    """Row of our parameter that gets the value, where several published parameters make one of ours."""
    addend: str = ""
    """Published table whose first row is added to every row of the value; empty: none."""


@dataclass(frozen=True)
class PublishedModel:
    """How a captioner of ours is made from a published state dict."""

    family: str
    """A key of :data:`training.models.FAMILIES`."""
    config: CaptionerConfig
    vocabulary: Vocabulary
    sources: Sequence[Source]
    ignored: Collection[str] = ()
    """Published names without a value that matters, e.g. states of an unfinished search."""
    forbidden: tuple[int, ...] = ()
    """Our ids of the words that the published search never chooses; probabilities are normalised over the others."""
    beam_size: int = 5
    max_words: int = 20
    """Longest caption of the published search, end token included."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The entry ``data`` of the experiment that would train the checkpoint, without ``max_words``."""


@dataclass(frozen=True)
class ImportChoices:
    """What a state dict does not say."""

    heads: int | None = None
    """Attention heads; None: those of the published configuration."""
    attend_padding: bool = False
    """Whether attention reads padded regions as the published code does."""
    legacy_extra_skip: bool = False
    """Whether the encoder of an Object Relation Transformer adds the attention's input before its output projection."""


class PublishedFormat(Protocol):
    """A published format."""

    def __call__(self, state: Mapping[str, Tensor], words: Sequence[str], choices: ImportChoices) -> PublishedModel:
        """Read the sizes of a model from its tensors, by their published names, and ``words``, by their published ids.

        Raises:
            ImportCheckpointError: a tensor that determines a size is missing or has other axes, or the words are wrong.
        """
        ...


def _numpy_states() -> AbstractContextManager[None]:
    """Allow the arrays and numbers of numpy that checkpoints keep beside the weights, such as random states."""
    multiarray = np._core.multiarray  # type: ignore[attr-defined]
    allowed: list[Any] = [np.ndarray, np.dtype]
    allowed += [type(np.dtype(name)) for name in ("uint32", "int64", "float32", "float64")]
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):  # named by numpy 1 and 2
        allowed += [(multiarray._reconstruct, f"{module}._reconstruct"), (multiarray.scalar, f"{module}.scalar")]
    return torch.serialization.safe_globals([*allowed, _latin])


def _latin(text: str, encoding: str = "latin1") -> bytes:
    """Restore bytes, which pickle writes as latin1 text for Python 2."""
    return text.encode(encoding)


_latin.__module__, _latin.__qualname__ = "_codecs", "encode"


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a ``.pth`` file; nothing in the file is executed.

    A state dict may be the file itself or its entry ``state_dict`` or ``model``; the prefix ``module.`` of all names,
    which DataParallel adds, is removed.

    Raises:
        ImportCheckpointError: the file is missing or has no state dict.
    """
    try:
        with _numpy_states():
            found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ImportCheckpointError(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # a malformed pickle makes the reader raise almost anything
        reason = str(error).strip().split("\n")[0]
        raise ImportCheckpointError(
            f"{path} is not a file of tensors that torch.load reads with weights_only ({reason})"
        ) from None
    for entry in ("state_dict", "model"):
        if isinstance(found, Mapping) and isinstance(found.get(entry), Mapping):
            found = found[entry]
    if not isinstance(found, Mapping) or not found or not all(isinstance(v, Tensor) for v in found.values()):
        raise ImportCheckpointError(f"{path} has no state dict: neither it nor its entry state_dict or model is one")
    if all(name.startswith("module.") for name in found):
        found = {name.removeprefix("module."): value for name, value in found.items()}
    return dict(found)


def read_words(path: Path) -> list[str]:
    """Read a published vocabulary: a text file with a word a line by id, or JSON: a list of words or its ``itos``.

    Raises:
        ImportCheckpointError: the file is missing or is no list of words.
        DataError: a file whose name ends in .json is not JSON.
    """
    if path.suffix == ".json":
        found = read_json(path)
        found = found.get("itos") if isinstance(found, dict) else found
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
            raise ImportCheckpointError(f"{path}: expected a list of words, or an object with one as itos")
        return found
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        raise ImportCheckpointError(
            f"{path} is not UTF-8 text; write the words of a pickled vocabulary to a text file, one a line by id"
        ) from None
    except OSError as error:
        raise ImportCheckpointError(f"{path}: {error.strerror}") from None


def reordered_vocabulary(words: Sequence[str], special: Sequence[int]) -> tuple[Vocabulary, Tensor]:
    """Put the special words first, as our vocabularies have them.

    Args:
        words: by the published id.
        special: published ids of padding, begin, end and unknown; an id may be given several times.

    Returns:
        The vocabulary, in which words of white space are called ``<space>``, ``<space_2>`` ..., and the published id of
        each of its words, (V,) int64.

    Raises:
        ImportCheckpointError: a word occurs twice.
    """
    order = [*special, *(index for index in range(len(words)) if index not in special)]
    named = [*SPECIAL, *(words[index] for index in order[len(SPECIAL) :])]
    seen: set[str] = set()
    for word in named:
        if word in seen:
            raise ImportCheckpointError(f"the vocabulary has the word {word!r} twice")
        seen.add(word)
    return Vocabulary(tuple(_without_spaces(named))), torch.tensor(order)


def _without_spaces(words: Sequence[str]) -> Iterator[str]:
    """Rename words with white space, which a tokeniser may make of captions with several spaces in a row."""
    taken = set(words)
    for word in words:
        if word.split() == [word]:
            yield word
            continue
        name = "_".join(word.split()) or "<space>"
        number = 1
        while name in taken:
            number += 1
            name = f"<space_{number}>"
        taken.add(name)
        yield name


def shape_of(state: Mapping[str, Tensor], name: str, axes: int) -> tuple[int, ...]:
    """Return the shape of a tensor from which a format reads sizes.

    Raises:
        ImportCheckpointError: it is missing, or has another number of axes.
    """
    if name not in state:
        raise ImportCheckpointError(f"lacks {name}; give a state dict of the format")
    if state[name].ndim != axes:
        raise ImportCheckpointError(f"{name} has the shape {tuple(state[name].shape)}, not {axes} axes")
    return tuple(state[name].shape)


def count_layers(state: Mapping[str, Tensor], prefix: str) -> int:
    """Count the layers whose names begin with ``prefix`` and their number.

    Raises:
        ImportCheckpointError: there is none.
    """
    pattern = re.compile(rf"{re.escape(prefix)}\.(\d+)\.")
    found = {int(match[1]) for name in state if (match := pattern.match(name))}
    if not found:
        raise ImportCheckpointError(f"lacks {prefix}.0; give a state dict of the format")
    return max(found) + 1


def affine(theirs: str, ours: str) -> Iterator[Source]:
    """Yield weight and bias of a layer."""
    for leaf in ("weight", "bias"):
        yield Source(f"{ours}.{leaf}", f"{theirs}.{leaf}")


def sized(config: Callable[..., Config], **sizes: int) -> Config:
    """Make a configuration of sizes that were read from tensors.

    Raises:
        ImportCheckpointError: they do not fit each other.
    """
    try:
        return config(**sizes)
    except ValueError as error:
        raise ImportCheckpointError(f"the sizes of the tensors do not fit each other: {error}") from None


def experiment_of(name: str, family: str, config: CaptionerConfig, data: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a captioner as the result of an experiment, which evaluation, training and export read."""
    sizes = asdict(config)
    del sizes["vocabulary_size"], sizes["token_width"]
    return {
        "name": name,
        "family": family,
        "model": sizes,
        "data": {**data},
        "phases": [{"name": "published", "epochs": 1, "learning_rate": 0.0}],
    }


def build(model: PublishedModel, state: Mapping[str, Tensor]) -> Captioner:
    """Build the captioner and load the published values.

    Raises:
        ImportCheckpointError: as :func:`load_published`.
    """
    captioner = FAMILIES[model.family](model.config).eval()
    load_published(captioner, model.sources, state, f"{model.family} of this size", model.ignored)
    return captioner


def load_published(
    captioner: Captioner, sources: Iterable[Source], state: Mapping[str, Tensor], kind: str, ignored: Collection[str]
) -> None:
    """Load all values of a captioner from tensors of any float type; one on the meta device is given the tensors.

    Raises:
        ImportCheckpointError: a parameter is missing, unknown or of another shape; names the first.
    """
    ours = captioner.state_dict()
    values: dict[str, Tensor] = {}
    read = set(ignored)
    for source in sources:
        for needed in filter(None, (source.theirs, source.addend)):
            if needed not in state:
                raise ImportCheckpointError(f"the weights lack {needed}, which {kind} has")
            read.add(needed)
        published, target = state[source.theirs], ours[source.ours]
        try:
            value = source.convert(published)
        except (IndexError, RuntimeError):
            value = published
        if value.shape != (target.shape if source.row is None else target.shape[1:]):
            raise ImportCheckpointError(
                f"{source.theirs} has the shape {tuple(published.shape)}, which does not fit {source.ours} of the "
                f"shape {tuple(target.shape)} that {kind} has"
            )
        value = value.to(target.dtype)
        if source.addend:
            value = value + state[source.addend][0].to(target.dtype)
        if source.row is None:
            values[source.ours] = value
        else:
            values.setdefault(source.ours, torch.empty(target.shape, dtype=target.dtype))[source.row] = value
    if unknown := [name for name in state if name not in read]:
        raise ImportCheckpointError(f"the weights have {unknown[0]}, which {kind} lacks")
    captioner.load_state_dict(values, strict=True, assign=next(captioner.parameters()).is_meta)
