"""An ensemble of captioners: the mean of their probabilities at every word (M2, Sec. 5.2)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from training.models.captioner import (
    BufferPolicy,
    Captioner,
    CaptionerConfig,
    Encoded,
    HookContext,
    PrefixTree,
    State,
    Step,
    Visual,
)
from training.models.families import SINGLE_FAMILIES


@dataclass(frozen=True)
class EnsembleConfig(CaptionerConfig):
    """The members; their vocabulary and visual tokens are those of the ensemble.

    Raises:
        ValueError: there is no member, or one is of an unknown family.
    """

    members: list[dict[str, Any]] = field(default_factory=list)
    """For each its ``family``, a key of :data:`training.models.families.SINGLE_FAMILIES`, and its hyper-parameters
    ``model``, without vocabulary size and token width."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.members:
            raise ValueError("members must name one captioner or more")
        for member in self.members:
            if member["family"] not in SINGLE_FAMILIES:
                raise ValueError(
                    f"members: family must be one of {', '.join(SINGLE_FAMILIES)}, not {member['family']!r}"
                )


class Ensemble(Captioner):
    """Captioners side by side; the state is a tuple of theirs.

    The logits are the logarithms of the mean probabilities, and the attention is the mean of the members' attention.
    """

    Config = EnsembleConfig
    config: EnsembleConfig

    def __init__(self, config: EnsembleConfig) -> None:
        super().__init__(config)
        self.members = nn.ModuleList(_construct(member, config) for member in config.members)
        members = self.captioners()
        # Class attributes of single families; what an ensemble needs depends on its members.
        self.needs_boxes = any(member.needs_boxes for member in members)  # type: ignore[misc]
        self.buffer_policies: Mapping[str, BufferPolicy] = {  # type: ignore[misc]
            f"members.{index}.{name}": policy
            for index, member in enumerate(members)
            for name, policy in member.buffer_policies.items()
        }

    @classmethod
    def of(cls, members: Mapping[str, tuple[str, Captioner]]) -> "Ensemble":
        """Join trained captioners.
        ``members``: family and captioner by a name for error sentences, e.g. a path.

        Raises:
            ValueError: the captioners differ in the size of the vocabulary or the width of visual tokens; names both.
        """
        (first, (_, example)), *others = members.items()
        for name, (_, other) in others:
            for key in ("vocabulary_size", "token_width"):
                ours, theirs = getattr(example.config, key), getattr(other.config, key)
                if ours != theirs:
                    raise ValueError(f"{name} has a {key} of {theirs}, but {first} has {ours}")
        configs = [_describe(family, captioner) for family, captioner in members.values()]
        ensemble = cls(EnsembleConfig(example.config.vocabulary_size, example.config.token_width, configs))
        for own, (_, captioner) in zip(ensemble.captioners(), members.values(), strict=True):
            own.load_state_dict(captioner.state_dict())
        return ensemble.eval()

    def captioners(self) -> list[Captioner]:
        """Return the members."""
        return [member for member in self.members if isinstance(member, Captioner)]

    @property
    def max_words(self) -> int | None:
        return min((member.max_words for member in self.captioners() if member.max_words is not None), default=None)

    def encode(self, visual: Visual) -> tuple[Encoded, ...]:
        return tuple(member.encode(visual) for member in self.captioners())

    def initial_state(self, encoded: tuple[Encoded, ...], sequences: int) -> tuple[State, ...]:
        return tuple(
            member.initial_state(image, sequences) for member, image in zip(self.captioners(), encoded, strict=True)
        )

    def decode(
        self,
        words: Tensor,
        position: Tensor | int,
        past: Tensor,
        state: tuple[State, ...],
        encoded: tuple[Encoded, ...],
        *,
        attention: bool = True,
    ) -> Step:
        steps = [
            member.decode(words, position, past, before, image, attention=attention)
            for member, before, image in zip(self.captioners(), state, encoded, strict=True)
        ]
        weights = [step.attention for step in steps if step.attention is not None]
        return Step(
            _mean_probabilities([step.logits for step in steps]),
            torch.stack([attended.float() for attended in weights]).mean(dim=0) if len(weights) == len(steps) else None,
            tuple(step.state for step in steps),
        )

    def decode_tree(self, tree: PrefixTree, encoded: tuple[Encoded, ...]) -> Tensor:
        return _mean_probabilities(
            [member.decode_tree(tree, image) for member, image in zip(self.captioners(), encoded, strict=True)]
        )

    def on_step(self, context: HookContext) -> None:
        for member in self.captioners():
            member.on_step(context)


def _construct(member: dict[str, Any], config: CaptionerConfig) -> Captioner:
    """Construct a member with the vocabulary size and token width of the ensemble."""
    family = SINGLE_FAMILIES[member["family"]]
    return family(family.Config(config.vocabulary_size, config.token_width, **member["model"]))


def _describe(family: str, captioner: Captioner) -> dict[str, Any]:
    """Describe a captioner as a member: its family, and the hyper-parameters that only this family has."""
    shared = CaptionerConfig.__dataclass_fields__
    options = {name: value for name, value in asdict(captioner.config).items() if name not in shared}
    return {"family": family, "model": options}


def _mean_probabilities(logits: Sequence[Tensor]) -> Tensor:
    """Compute the logarithm of the mean of the probabilities, in the type of the first logits."""
    logs = torch.stack([own.float().log_softmax(dim=-1) for own in logits])
    return (logs.logsumexp(dim=0) - math.log(len(logits))).to(logits[0].dtype)
