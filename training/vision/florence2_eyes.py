"""The vision side of Florence-2 as one model of transformers: DaViT (Ding et al., ECCV 2022) and the projector.

:mod:`training.vision.transformers_backbone` imports this module when it meets such a model, as it does transformers.
"""

from types import SimpleNamespace
from typing import Any

from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.florence2 import modeling_florence2 as florence2


class _ChannelAttention(florence2.Florence2VisionChannelAttention):
    """The published products without the published transposes, which take an engine as long as all layers together."""

    def forward(self, tokens: Tensor) -> Tensor:
        """Attend from channels to channels of a group, over all N tokens (B, N, C)."""
        groups = self.qkv(tokens).unflatten(2, (3, self.groups, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = groups.unbind(0)  # (B, groups, N, C / groups) each
        scores = query.transpose(2, 3) @ (key * tokens.shape[1] ** -0.5)
        return self.proj((value @ scores.softmax(dim=-1).transpose(2, 3)).transpose(1, 2).flatten(2))


class Florence2Eyes(florence2.Florence2PreTrainedModel):
    """Tokens of the width of words: the mean of all cells, then the cells of the grid."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.vision_tower = florence2.Florence2VisionBackbone(config)
        whole: Any = SimpleNamespace(vision_config=config)
        self.multi_modal_projector = florence2.Florence2MultiModalProjector(whole)
        for module in self.modules():
            if isinstance(module, florence2.Florence2VisionChannelAttention):
                module.__class__ = _ChannelAttention
        self.post_init()

    def forward(self, pixels: Tensor) -> BaseModelOutput:
        """Compute the tokens (B, 1 + rows * columns, projection_dim) of (B, 3, H, W) pixels."""
        return BaseModelOutput(self.multi_modal_projector(self.vision_tower(pixels).last_hidden_state))
