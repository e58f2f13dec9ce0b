"""Post-hoc logit adjustment (Menon et al., ICLR 2021, Eq. 9) of the words that a captioner says.

A captioner learns that "a man" is likelier than "a plumber" whatever the photograph shows, so its captions have few
words, those of many photographs. The adjustment subtracts ``strength`` times the logarithm of a word's share in the
training captions from its logit. Rarer words make captions shorter, because the end token is a frequent word, too;
``end_penalty`` is subtracted from its logit.
"""

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.data.caption_dataset import CaptionDataset
from training.data.mixture import caption_weights
from training.data.tokenizer import tokenize
from training.engine.trained_captioner import TrainedCaptioner

ADJUSTMENT = "logit_adjustment"
"""Key of the record: strength and end penalty."""


class AdjustmentError(Exception):
    """A captioner that cannot be adjusted; the message says why."""


def word_counts(dataset: CaptionDataset) -> dict[str, float]:
    """Count the words of the training captions, each as often as an epoch has it, times its weight in the loss.

    Returns:
        The counts, and under the empty string the number of captions, which is the number of end tokens.
    """
    images = dataset.split("train")
    counts: dict[str, float] = {"": 0.0}
    for image, weight in zip(images, caption_weights(dataset, images).tolist(), strict=True):
        for caption in dataset.captions[image]:
            counts[""] += weight
            for word in tokenize(caption):
                counts[word] = counts.get(word, 0.0) + weight
    return counts


def adjust_logits(
    trained: TrainedCaptioner, counts: Mapping[str, float], strength: float, end_penalty: float
) -> TrainedCaptioner:
    """Change the bias of the projection to the words; words that no training caption has keep theirs.

    Args:
        trained: it is not changed.
        counts: of :func:`word_counts`.
        strength: share of the logarithm of a word's frequency that is subtracted; 0 changes nothing.
        end_penalty: natural logarithm, subtracted from the logit of the end token as well.

    Raises:
        AdjustmentError: the captioner has no projection with an output for each word, says pieces of words, or is
            adjusted already.
    """
    if ADJUSTMENT in trained.record:
        raise AdjustmentError("its logits are adjusted already; give the captioner from before")
    if trained.vocabulary.continuation:
        raise AdjustmentError("it says pieces of words, and words are counted")
    projection = getattr(trained.captioner, "word_projection", None)
    size = len(trained.vocabulary)
    if not isinstance(projection, torch.nn.Linear) or projection.out_features != size:
        raise AdjustmentError(f"a {trained.family} with these options has no projection with an output for each word")
    adjusted = replace(trained, captioner=deepcopy(trained.captioner), record=dict(trained.record))
    projection = adjusted.captioner.get_submodule("word_projection")
    assert isinstance(projection, torch.nn.Linear)
    if projection.bias is None:
        adjusted.captioner.config = replace(adjusted.captioner.config, output_bias=True)
        projection.bias = torch.nn.Parameter(projection.weight.new_zeros(size))
    with torch.no_grad():
        projection.bias.add_(_biases(trained.vocabulary, counts, strength, end_penalty))
    adjusted.record[ADJUSTMENT] = {"strength": strength, "end_penalty": end_penalty}
    adjusted.record.pop("dev", None)
    return adjusted


def _biases(vocabulary: Vocabulary, counts: Mapping[str, float], strength: float, end_penalty: float) -> Tensor:
    """Compute what is added to the logit of each word, (V,) float32."""
    known = {index: counts.get(word, 0.0) for index, word in enumerate(vocabulary.words) if index >= len(SPECIAL)}
    known[Vocabulary.end_id] = counts[""]
    total = sum(known.values())
    biases = torch.zeros(len(vocabulary))
    for index, count in known.items():
        if count:
            biases[index] = -strength * math.log(count / total)
    biases[Vocabulary.end_id] -= end_penalty
    return biases
