"""A model of next to no work: a linear layer learns y = 2 x from the numbers of its images."""

import math

import numpy as np
import torch
from torch import nn

from training.checkpoint import load_checkpoint, save_checkpoint
from training.engine.dev_evaluation import DevScores
from training.engine.task import TrainedModule
from training.objectives.objective import BatchLoss

IMAGES = 22


class LinearTask:
    """In place of :class:`training.engine.task.CaptionTask`; ``bad_image`` has ``bad_factor`` times its loss."""

    max_loss = 1e6
    pairs = IMAGES
    bad_image = None
    bad_factor = math.nan

    def __init__(self, config, data, cache, processes, left_out=None):
        self.images = {"train": [str(image) for image in range(IMAGES)]}
        self.layer = nn.Linear(1, 1)
        nn.init.zeros_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)
        self.objective = self.trained = self
        self._learning_rate, self._processes = config.phases[0].learning_rate, processes

    def prepare(self):
        self.layer.to(self._processes.device)

    def modules_to_train(self, phase):
        return {"layer": TrainedModule(self.layer, self._learning_rate)}

    def begin_phase(self, phase):
        pass

    def begin_epoch(self, epoch, random):
        return np.arange(IMAGES)

    def weights(self, images):
        return np.ones(len(images))

    costs = weights

    def read(self, images):
        return torch.from_numpy(images[:, None] / IMAGES).float()

    def loss(self, inputs, images):
        loss = (self.layer(inputs) - 2 * inputs).square().mean()
        if self.layer.training and self.bad_image in images:
            loss = loss * self.bad_factor
        return BatchLoss(loss, reward=float(images.mean()))

    def on_step(self, context):
        pass

    def changing_buffers(self):
        return {}

    def evaluate(self, epochs_left):
        return DevScores({"cider": 0.0, "bleu_4": 0.0})

    def tensors(self):
        return self.layer.state_dict()

    def load_tensors(self, tensors):
        self.layer.load_state_dict({name: tensors[name] for name in ("weight", "bias")})

    def save(self, path, epoch):
        save_checkpoint(path, self.tensors(), {})


def saved_weights(run):
    """Weights and state of the optimizer in the checkpoint of a run."""
    return load_checkpoint(run / "checkpoint.safetensors")[0]
