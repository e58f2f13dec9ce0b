"""A captioner that prefers what tells its frame from other frames of the same kind of scene.

Most bathrooms have a sink and a toilet, so the likeliest caption of a bathroom is that of every bathroom. This
captioner adds to the log probability of a word a share of what the frame tells about it, the pointwise mutual
information of the word and the frame among frames of the same scene s, after the words that were said:

    log p(w | frame, words) + strength_s (log p(w | frame, words) - log q_s(w | words))

q_s is a small language model of what the captioner says in frames of that scene. The first words, which say what kind
of scene it is ("a kitchen with a"), are not contrasted. This is the emitter-suppressor search of Vedantam et al. (CVPR
2017, Context-aware Captions from Context-agnostic Supervision) with a language model in place of one distractor image.
Words that are much less likely than the likeliest one are not raised (the plausibility constraint of Li et al., ACL
2023, Contrastive Decoding), because the ratio of two small probabilities is noise.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.models.captioner import (
    PADDING_ID,
    BufferPolicy,
    Captioner,
    CaptionerConfig,
    Encoded,
    HookContext,
    Rows,
    State,
    Step,
    Visual,
)
from training.models.members import MemberConfig, check_family, construct_member

LARGEST_DIFFERENCE = 5.0
"""Bound of the difference of two log probabilities."""
_PLAUSIBLE_SHARE = 0.1
"""Words with less than this share of the likeliest word's probability are not raised."""


@dataclass(frozen=True)
class ContrastiveConfig(CaptionerConfig):
    """The captioner, and the sizes of what it is contrasted with.

    Raises:
        ValueError: a value is out of range, or the member's family is unknown; the message names it.
    """

    member: MemberConfig = field(default_factory=lambda: MemberConfig(family="smart", model={}))
    """The captioner, of a single family."""
    scenes: int = 8
    """K, kinds of scenes."""
    context_words: int = 3
    """Words that the language model sees, the last ones."""
    language_width: int = 192
    """h, width of the language model."""
    opening_words: int = 4
    """Words at the beginning of a caption that are not contrasted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("scenes", "context_words", "language_width"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.opening_words < 0:
            raise ValueError(f"opening_words must be 0 or more, not {self.opening_words}")
        check_family("member", self.member)


class SceneLanguageModel(nn.Module):
    """The next word from the last C words and the scene: a feed-forward language model (Bengio et al., JMLR 2003)."""

    def __init__(self, vocabulary_size: int, scenes: int, context_words: int, width: int) -> None:
        super().__init__()
        self.words = nn.ModuleList(nn.Embedding(vocabulary_size, width) for _ in range(context_words))
        self.scenes = nn.Embedding(scenes, width)
        self.projection = nn.Linear(width, vocabulary_size)

    def forward(self, words: Tensor, scene: Tensor) -> Tensor:
        """Compute logits.

        Args:
            words: (B, G, C - 1 + T) int64, the T words after each of which one is predicted, and C - 1 before them.
            scene: (B, h), the scene's row of :attr:`scenes`.

        Returns:
            (B, G, T, V)
        """
        predicted = words.shape[2] - len(self.words) + 1
        hidden = scene[:, None, None]
        for offset, embedding in enumerate(self.words):
            hidden = hidden + embedding(words[:, :, offset : offset + predicted])
        logits: Tensor = self.projection(torch.relu(hidden))
        return logits


class EncodedScene(NamedTuple):
    """Everything that decoding needs of B images."""

    image: Encoded
    """Of the captioner."""
    scene: Tensor
    """(B, h), the language model's vector of the image's scene."""
    strength: Tensor
    """(B,), that of the scene."""


class ContrastiveState(NamedTuple):
    """The captioner's state, and the words before the next one."""

    captioner: State
    previous: Rows
    """(B, G, C - 1) int64, padding before the begin token."""


class Contrastive(Captioner):
    """A captioner contrasted with a language model of its scene. The attention is the captioner's."""

    Config = ContrastiveConfig
    config: ContrastiveConfig
    scene_centres: Tensor
    """(K, token_width) float32, unit vectors. An image is of the scene whose centre has the largest cosine with the
    mean of its tokens."""
    scene_strengths: Tensor
    """(K,) float32, strength of the contrast; 0 for a scene without."""

    def __init__(self, config: ContrastiveConfig) -> None:
        super().__init__(config)
        self.captioner = construct_member(config.member, config)
        self.needs_boxes = self.captioner.needs_boxes  # type: ignore[misc]
        self.needs_image_size = self.captioner.needs_image_size  # type: ignore[misc]
        self.language_model = SceneLanguageModel(
            config.vocabulary_size, config.scenes, config.context_words, config.language_width
        )
        self.register_buffer(
            "scene_centres", functional.normalize(torch.randn(config.scenes, config.token_width), dim=1)
        )
        self.register_buffer("scene_strengths", torch.full((config.scenes,), 0.3))
        self.buffer_policies: Mapping[str, BufferPolicy] = {  # type: ignore[misc]
            # Made by training, as weights are, though no gradient changes them.
            "scene_centres": BufferPolicy(average=True),
            "scene_strengths": BufferPolicy(average=True),
            **{f"captioner.{name}": policy for name, policy in self.captioner.buffer_policies.items()},
        }

    @property
    def max_words(self) -> int | None:
        return self.captioner.max_words

    def scene_of(self, visual: Visual) -> Tensor:
        """Return the index of each image's scene, (B,) int64."""
        tokens = visual.tokens.float()
        if visual.mask is not None:
            tokens = tokens * visual.mask[..., None]
        # The number of tokens does not matter, nor does the length of their sum.
        return (tokens.sum(dim=1) @ self.scene_centres.T).argmax(dim=1)

    def encode(self, visual: Visual) -> EncodedScene:
        scene = self.scene_of(visual)
        return EncodedScene(
            self.captioner.encode(visual), self.language_model.scenes(scene), self.scene_strengths[scene]
        )

    def initial_state(self, encoded: EncodedScene, sequences: int) -> ContrastiveState:
        shape = (encoded.strength.shape[0], sequences, self.config.context_words - 1)
        previous = torch.full(shape, PADDING_ID, dtype=torch.int64, device=encoded.strength.device)
        return ContrastiveState(self.captioner.initial_state(encoded.image, sequences), Rows(previous))

    def decode(
        self,
        words: Tensor,
        position: Tensor | int,
        past: Tensor,
        state: ContrastiveState,
        encoded: EncodedScene,
        *,
        attention: bool = True,
    ) -> Step:
        step = self.captioner.decode(words, position, past, state.captioner, encoded.image, attention=attention)
        context = torch.cat([state.previous.values, words], dim=2)
        usual = self.language_model(context, encoded.scene)
        places = position + torch.arange(words.shape[2], device=words.device)
        contrasts = (places >= self.config.opening_words).to(encoded.strength.dtype)
        logits = contrasted(step.logits, usual, encoded.strength[:, None, None, None] * contrasts[:, None])
        previous = context[:, :, words.shape[2] :]
        return Step(logits.to(step.logits.dtype), step.attention, ContrastiveState(step.state, Rows(previous)))

    def on_step(self, context: HookContext) -> None:
        self.captioner.on_step(context)

    def on_epoch(self, context: HookContext) -> None:
        self.captioner.on_epoch(context)


def contrasted(logits: Tensor, usual: Tensor, strength: Tensor) -> Tensor:
    """Raise and lower words by what the frame tells about them.

    Args:
        logits: (..., V), the captioner's.
        usual: (..., V), those of the language model of the scene.
        strength: share of the difference of their log probabilities that is added; broadcast.

    Returns:
        (..., V) float32
    """
    own = logits.float().log_softmax(dim=-1)
    difference = (own - usual.float().log_softmax(dim=-1)).clamp(-LARGEST_DIFFERENCE, LARGEST_DIFFERENCE)
    plausible = own >= own.amax(dim=-1, keepdim=True) + math.log(_PLAUSIBLE_SHARE)
    return own + strength * torch.where(plausible, difference, difference.clamp(max=0.0))
