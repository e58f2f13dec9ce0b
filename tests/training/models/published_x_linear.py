"""Parity cases of the published X-LAN and X-Transformer."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.models.captioner import Visual


class ParityCase:
    """Arrays of a case with our word ids."""

    def __init__(self, path: Path) -> None:
        from export.published_x_linear import published_ids

        self.arrays: dict[str, np.ndarray] = dict(np.load(path))
        self.state = {key[3:]: torch.from_numpy(value) for key, value in self.arrays.items() if key.startswith("sd/")}
        count = self.arrays["tf_logits"].shape[-1]
        self.ids = published_ids(count, count - 1)
        """Published id of each of our words."""
        self.ours = np.empty(count, np.int64)
        self.ours[self.ids[3:]] = np.arange(3, len(self.ids))
        self.ours[0] = Vocabulary.end_id

    def visual(self) -> Visual:
        return Visual(torch.from_numpy(self.arrays["features"]), torch.from_numpy(self.arrays["mask"]) > 0)

    def inputs(self) -> torch.Tensor:
        """Teacher-forcing input (B, 1, T); position t holds no padding where the target is real."""
        words = self.ours[self.arrays["input_seq"]]
        words[:, 0] = Vocabulary.begin_id
        after = np.arange(words.shape[1]) >= (self.arrays["target_seq"] >= 0).sum(axis=1, keepdims=True)
        return torch.from_numpy(np.where(after, Vocabulary.padding_id, words))[:, None]

    def real(self) -> np.ndarray:
        return self.arrays["target_seq"] >= 0

    def beams(self, name: str) -> np.ndarray:
        """Words (B, T) of the best beams with our ids: the end token, then padding."""
        words = self.arrays[name]
        ended = (words == 0).cumsum(axis=1)
        return np.where(ended > 1, Vocabulary.padding_id, self.ours[words])

    def __getitem__(self, name: str) -> Any:
        return self.arrays[name]
