"""A trained captioner as one file: captioner, vocabulary, backbone where it has one, and a record."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from smart_caption_ros.captioning.search import Search
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.checkpoint import load_checkpoint, save_checkpoint, under_prefix, with_prefix
from training.data.datasets import merge_provenance, provenance_of_record
from training.data.visual_inputs import visual_of_images
from training.decoding.beam_search import Hypotheses, SearchSettings, beam_search
from training.decoding.pieces import PieceTables
from training.decoding.repeats import same_words
from training.engine.buffers import load_released_tensors, released_tensors
from training.engine.untrained_words import fill_untrained_words
from training.errors import CheckpointError
from training.models import FAMILIES
from training.models.captioner import Captioner, Visual
from training.models.eight_bits import has_eight_bits, set_eight_bits
from training.vision.backbone import SQUASHED, Backbone
from training.vision.side_by_side import construct

UNTRAINED = "untrained_words"
"""Key of the record: words of the vocabulary that no training caption had."""
MERGES = "merges"
"""Key of the record: pairs of pieces, by which words are split into the pieces of the vocabulary. That of a published
captioner has none; see :class:`training.data.byte_pairs.BytePairs`."""


@dataclass
class TrainedCaptioner:
    """Result of training and input of the export."""

    family: str
    captioner: Captioner
    backbone: Backbone | None
    """Computes visual tokens of frames; None for a captioner of stored features."""
    vocabulary: Vocabulary
    record: dict[str, Any]
    """JSON values: name, experiment, data, scores."""
    search: Search = field(default_factory=Search)
    """Settings of its search, which the export takes over."""

    @property
    def backbone_options(self) -> dict[str, Any] | None:
        """Kind and constructor arguments of the backbone; None without one."""
        return None if self.backbone is None else {"kind": self.backbone.kind, **self.backbone.options}

    @property
    def eight_bits(self) -> bool:
        """Whether the captioner's linear layers compute in 8 bits."""
        return has_eight_bits(self.captioner)

    def change_search(self, **values: Any) -> None:
        """Change fields of :attr:`search`; None leaves a field as it is.

        Raises:
            CheckpointError: a value does not fit the others.
        """
        try:
            self.search = self.search.changed(**values)
        except ValueError as error:
            raise CheckpointError(f"settings of the search: {error}") from None

    @property
    def same_words(self) -> torch.Tensor | None:
        """The words that the penalty of repeated words takes for the same, (V,) int32; None without a penalty."""
        return same_words(self.vocabulary) if self.search.repeat_penalty else None

    @property
    def pieces(self) -> PieceTables | None:
        """Tables of the vocabulary's pieces of words; None where all are whole words."""
        return PieceTables.of(self.vocabulary)

    def set_image_size(self, size: int | Sequence[int] | None) -> None:
        """Caption frames of another size, ``size`` x ``size`` pixels or width and height; None leaves it as it is.

        Training with random crops shows objects larger than whole frames do, so a frame that is larger than those of
        the training may be described better (Touvron et al., NeurIPS 2019).

        Raises:
            CheckpointError: the captioner takes no frames, or none of that size.
        """
        if size is None:
            return
        if self.backbone is None:
            raise CheckpointError("--image-size is for captioners with a backbone; this one takes stored features")
        try:
            self.backbone.set_image_size(*((size, size) if isinstance(size, int) else size))
        except ValueError as error:
            raise CheckpointError(f"--image-size: {error}") from None

    @property
    def caption_provenance(self) -> list[dict[str, str]]:
        """Name and terms of the data sets whose captions it was trained on."""
        members = (provenance_of_record(member) for member in self.record.get("members", []))
        return merge_provenance(provenance_of_record(self.record), *members)

    def save(self, path: Path) -> None:
        """Write one safetensors file, atomically."""
        state: dict[str, Any] = {
            "family": self.family,
            "model": asdict(self.captioner.config),
            "vocabulary": self.vocabulary.words,
            "record": self.record,
        }
        state |= {key: value for key, value in self.vocabulary.joining.items() if value}
        if self.eight_bits:
            state["eight_bits"] = True
        state["search"] = self.search.as_json()
        if self.backbone_options is not None:
            state["backbone"] = self.backbone_options
        if self.backbone is not None and (size := self.backbone.spec.preprocessing.size) != SQUASHED.size:
            state["image_size"] = size[0] if size[0] == size[1] else list(size)
        save_checkpoint(path, self._with_backbone(released_tensors(self.captioner)), state)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Collect the weights and everything that training continues with, as ``captioner.*`` and ``backbone.*``."""
        return self._with_backbone(self.captioner.state_dict())

    def _with_backbone(self, captioner: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        tensors = with_prefix("captioner", captioner)
        if self.backbone is not None:
            tensors.update(with_prefix("backbone", self.backbone.state_dict()))
        return tensors

    def load_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Load the weights of :meth:`tensors`; other names are ignored."""
        load_released_tensors(self.captioner, under_prefix("captioner", tensors))
        if self.backbone is not None:
            self.backbone.load_state_dict(under_prefix("backbone", tensors))

    @classmethod
    def load(cls, path: Path) -> "TrainedCaptioner":
        """Read a file of :meth:`save`; the networks are in evaluation mode.

        Words that no training caption had take the weights of related words
        (:mod:`training.engine.untrained_words`).

        Raises:
            CheckpointError: the file is missing, malformed or not a trained captioner.
        """
        tensors, state = load_checkpoint(path)
        if not {"family", "model", "vocabulary", "record", "search"} <= state.keys():
            raise CheckpointError(f"{path} is not a trained captioner; give the best.safetensors of a run")
        captioner = new_captioner(state["family"], state["model"], path)
        set_eight_bits(captioner, bool(state.get("eight_bits")))
        joining = {key: state[key] for key in ("continuation", "attachment", "clean_up") if key in state}
        backbone = None
        try:
            vocabulary = Vocabulary(tuple(state["vocabulary"]), **joining)
            if under_prefix("backbone", tensors):
                backbone = construct(state["backbone"]).eval()
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # of a later version, or changed
            raise CheckpointError(f"{path}: its vocabulary or backbone is unknown here: {error}") from None
        try:
            search = Search.from_json(state["search"])
        except ValueError as error:
            raise CheckpointError(f"{path}: settings of the search: {error}") from None
        trained = cls(state["family"], captioner, backbone, vocabulary, state["record"], search)
        trained.set_image_size(state.get("image_size"))
        trained._check_tensors(path, tensors)
        trained.load_tensors(tensors)
        fill_untrained_words(captioner, vocabulary, trained.record.get(UNTRAINED, []))
        return trained

    def _check_tensors(self, path: Path, tensors: dict[str, torch.Tensor]) -> None:
        """Check the names and shapes of a file's tensors."""
        needed, known = self._with_backbone(released_tensors(self.captioner)), self.tensors()
        for name, tensor in known.items():
            if name in tensors and tensors[name].shape != tensor.shape:
                raise CheckpointError(
                    f"{path}: {name} has the shape {tuple(tensors[name].shape)}, but a {self.family} of the options in "
                    f"the file has {tuple(tensor.shape)}; the file was changed"
                )
            if name in needed and name not in tensors:
                raise CheckpointError(f"{path} lacks {name}, which a {self.family} of the options in the file has")
        for name in tensors:
            if name not in known and name.startswith(("captioner.", "backbone.")):
                raise CheckpointError(f"{path} has {name}, which a {self.family} of the options in the file lacks")

    def caption(
        self, visual: Visual, beam_size: int | None = None, max_words: int | None = None, *, attention: bool = True
    ) -> Hypotheses:
        """Search for the captions of B images.
        ``beam_size``, ``max_words``: in place of those of :attr:`search`.
        """
        search = asdict(self.search.changed(beam_size=beam_size, max_words=max_words))
        settings = SearchSettings(**search, attention=attention, same_words=self.same_words, pieces=self.pieces)
        return beam_search(self.captioner, visual, settings)

    def caption_images(
        self, images_bgr: np.ndarray, beam_size: int | None = None, max_words: int | None = None
    ) -> Hypotheses:
        """Search for the captions of (B, H, W, 3) uint8 frames, BGR, of the backbone's size, which must exist."""
        assert self.backbone is not None
        with torch.inference_mode():
            return self.caption(visual_of_images(self.backbone, torch.from_numpy(images_bgr)), beam_size, max_words)

    def words(self, hypotheses: Hypotheses) -> list[list[str]]:
        """Decode the words of each image's best caption."""
        return [self.vocabulary.decode(ids) for ids in hypotheses.words[:, 0].tolist()]

    def sentences(self, words: torch.Tensor) -> list[str]:
        """Decode each image's best caption of (B, k, T) ids."""
        return [self.vocabulary.sentence(ids) for ids in words[:, 0].tolist()]


def new_captioner(family: str, options: Mapping[str, Any], path: Path) -> Captioner:
    """Construct a captioner in evaluation mode, with the options of a checkpoint or bundle at ``path``.

    Raises:
        CheckpointError: the family is unknown or refuses the options.
    """
    if family not in FAMILIES:
        raise CheckpointError(
            f"{path} has a captioner of an unknown family {family!r}; known are {', '.join(FAMILIES)}"
        )
    try:
        return FAMILIES[family](FAMILIES[family].Config(**options)).eval()
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} has options that the family {family} refuses: {error}") from None
