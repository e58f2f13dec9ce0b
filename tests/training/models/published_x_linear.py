"""Parity cases of the published X-LAN and X-Transformer."""

import numpy as np
import torch

from export.import_checkpoint.published import ImportChoices, build
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.models.captioner import Visual

NEVER_CHOSEN = (Vocabulary.padding_id, Vocabulary.begin_id)


class ParityCase:
    """Arrays of a case, and its words by our ids: the published id 0 is our end token, id n our word n + 3."""

    def __init__(self, path):
        self.arrays = dict(np.load(path))
        self.state = {key[3:]: torch.from_numpy(value) for key, value in self.arrays.items() if key.startswith("sd/")}
        count = self.arrays["tf_logits"].shape[-1]
        self.words = [f"w{index}" for index in range(1, count)]
        self.ours = np.arange(count) + len(SPECIAL) - 1
        self.ours[0] = Vocabulary.end_id

    def captioner(self, read):
        model = read(self.state, self.words, ImportChoices())
        assert model.vocabulary.words == (*SPECIAL, *self.words)
        return build(model, self.state)

    def visual(self):
        return Visual(torch.from_numpy(self.arrays["features"]), torch.from_numpy(self.arrays["mask"]) > 0)

    def inputs(self):
        """Teacher-forcing input (B, 1, T), padded where there is no target."""
        words = self.ours[self.arrays["input_seq"]]
        words[:, 0] = Vocabulary.begin_id
        return torch.from_numpy(np.where(self.real(), words, Vocabulary.padding_id))[:, None]

    def real(self):
        return self.arrays["target_seq"] >= 0

    def beams(self, name):
        """Words (B, T) of the best beams with our ids: the end token, then padding."""
        words = self.arrays[name]
        return np.where((words == 0).cumsum(axis=1) > 1, Vocabulary.padding_id, self.ours[words])

    def __getitem__(self, name):
        return self.arrays[name]
