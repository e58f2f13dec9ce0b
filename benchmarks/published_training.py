"""Self-critical training as M2's published code does it, for comparison with our trainer.

A straightforward loop: beam search in which every step projects the keys and values of all image tokens and of all
words so far anew for every beam (:class:`benchmarks.torch_decoders.PublishedStyle`), sorts all k * V continuations and
reorders all states; no early exit; the gradient passes through the whole search; CIDEr-D in Python, caption by caption
(:class:`PublishedCiderD`); Adam without clipping. Written from a description of the
published code, not copied. Two things are faster here than there: batches are read ahead as our trainer reads them,
and no Java tokeniser runs for the reward.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from benchmarks.torch_decoders import PublishedStyle
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.configs.schema import ExperimentConfig
from training.data.loading import load_ahead, loading_threads
from training.data.visual_batches import HostBatch
from training.decoding.beam_search import EXCLUDED, SearchSettings, excluded_words
from training.engine.captioner_setup import set_up_captioner
from training.errors import ConfigError
from training.models.captioner import Visual, map_state
from training.models.smart import Smart

MAX_N, SIGMA = 4, 6.0

Ngrams = Counter[tuple[str, ...]]
Vector = tuple[list[dict[tuple[str, ...], float]], list[float], int]
"""For each n the weights of the n-grams and their norm, and the length in bigrams."""


class Sampled(NamedTuple):
    """The k best captions of each image, best first."""

    words: Tensor
    """(B, k, T) int64, padding after the end token."""
    log_probabilities: Tensor
    """(B, k, T) float32, 0 after the end token."""


class PublishedStep(NamedTuple):
    """Result of a step."""

    loss: float
    reward: float


def published_search(decoder: PublishedStyle, visual: Visual, beam_size: int, max_words: int) -> Sampled:
    """Search for captions; always decodes ``max_words`` words."""
    batch, device = visual.tokens.shape[0], visual.tokens.device
    vocabulary_size = decoder.config.vocabulary_size
    excluded = excluded_words(vocabulary_size, SearchSettings.forbidden, device)
    # A caption that has ended goes on with padding alone, whose probability is then 1.
    only_padding = torch.full((vocabulary_size,), EXCLUDED, device=device)
    only_padding[Vocabulary.padding_id] = 0.0
    encoded = decoder.encode(visual)
    state = decoder.initial_state(encoded, 1)
    words = torch.full((batch, 1), Vocabulary.begin_id, device=device)
    scores = torch.zeros(batch, 1, device=device)
    ended = torch.zeros(batch, 1, dtype=torch.bool, device=device)
    nothing = torch.zeros(batch, 1, 0, dtype=torch.bool, device=device)  # the decoder's state has all words
    rows = torch.arange(batch, device=device)[:, None]
    history: list[Tensor] = []
    log_probabilities: list[Tensor] = []
    for position in range(max_words):
        logits, _, state = decoder.decode(words[..., None], position, nothing, state, encoded)
        of_words = (logits.squeeze(2).float() + excluded).log_softmax(dim=-1)
        of_words = torch.where(ended[..., None], only_padding, of_words)  # (B, k, V)
        totals, order = (scores[..., None] + of_words).flatten(1).sort(dim=-1, descending=True)
        scores, order = totals[:, :beam_size], order[:, :beam_size]
        parents = torch.div(order, vocabulary_size, rounding_mode="floor")
        words = order - parents * vocabulary_size
        state = map_state(state, lambda values, parents=parents: values[rows, parents], lambda values: values)  # type: ignore[misc]
        history = [values[rows, parents] for values in history]
        log_probabilities = [values[rows, parents] for values in log_probabilities]
        history.append(words)
        log_probabilities.append(of_words[rows, parents, words])
        ended = ended[rows, parents] | (words == Vocabulary.end_id)
    return Sampled(torch.stack(history, dim=-1), torch.stack(log_probabilities, dim=-1))


class PublishedTraining:
    """A run of self-critical training on the data of an experiment."""

    def __init__(self, config: ExperimentConfig, data: Path, device: torch.device, precision: str) -> None:
        """
        Args:
            config: the experiment, whose only phase is self-critical.
            data: data folder.
            device: that computes.
            precision: ``fp32``, as published, or ``bf16``.

        Raises:
            ConfigError: the experiment's captioner is not a SMArT.
        """
        setup = set_up_captioner(config, data, data / "cache")
        if not isinstance(setup.trained.captioner, Smart):
            raise ConfigError(f"family: the published recipe is for smart, not {config.family}")
        self._config, self._phase = config, config.phases[0]
        self._device, self._bf16 = device, precision == "bf16"
        self._inputs, self._images = setup.inputs, len(setup.images["train"])
        self._max_words = setup.captions.max_words
        self.captioner = setup.trained.captioner.to(self._device).train()
        self.decoder = PublishedStyle(self.captioner, sorts=False).train()
        self._reward = PublishedCiderD(setup.captions.words, setup.captions.vocabulary)
        self._optimizer = torch.optim.Adam(self.captioner.parameters(), lr=self._phase.learning_rate)

    def run(self) -> None:
        """Train an epoch."""
        self._inputs.begin_phase(self._phase, "bf16" if self._bf16 else "fp32")
        random = np.random.default_rng(self._config.seed)
        order, batch = random.permutation(self._images), self._phase.images_per_batch
        self._inputs.begin_epoch(0)

        def read(start: int) -> tuple[np.ndarray, HostBatch]:
            images = order[start : start + batch]
            return images, self._inputs.training_batch(images)

        with closing(load_ahead(read, range(0, self._images, batch), loading_threads(1))) as batches:
            while True:
                self._optimizer.zero_grad(set_to_none=True)
                try:
                    self.differentiate(batches)
                except StopIteration:
                    return
                self._optimizer.step()

    def differentiate(self, batches: Iterator[tuple[np.ndarray, HostBatch]]) -> PublishedStep:
        """Add the gradient of the next batch to the parameters.

        Raises:
            StopIteration: there is no further batch.
        """
        images, read = next(batches)
        visual = self._inputs.visual(tree_map_only(Tensor, lambda tensor: tensor.to(self._device), read))
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bf16):
            found = published_search(self.decoder, visual, self._phase.beam_size, self._max_words)
        rewards = torch.from_numpy(self._reward.score(images, found.words.cpu().numpy()))
        advantages = (rewards - rewards.mean(dim=1, keepdim=True)).to(found.log_probabilities)
        loss = -(advantages * found.log_probabilities.mean(dim=-1)).mean()
        loss.backward()
        return PublishedStep(loss.item(), float(rewards.mean()))


class PublishedCiderD:
    """CIDEr-D without an end token, in Python, caption by caption, on text.

    Document frequencies are those of the training captions. The published training also starts a Java tokeniser for
    every reward, which is left out here.
    """

    def __init__(self, captions: Sequence[Sequence[Sequence[str]]], vocabulary: Vocabulary) -> None:
        """
        Args:
            captions: for each training image its captions, as words.
            vocabulary: of the captioner.
        """
        self._words = vocabulary.words
        self._references = [[" ".join(words) for words in group] for group in captions]
        self._documents: Counter[tuple[str, ...]] = Counter()
        for group in self._references:
            self._documents.update({ngram for text in group for ngram in _count_ngrams(text)})
        self._log_images = math.log(len(captions))

    def score(self, images: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Score k captions for each of B images.

        Args:
            images: (B,) integers, indices into the captions.
            words: (B, k, T) integers, ids up to and including the end token, then padding.

        Returns:
            (B, k) float64 in [0, 10].
        """
        texts = [[self._decode(caption) for caption in beams] for beams in words.tolist()]
        scores = [
            [self._score(text, self._references[image]) for text in beams]
            for image, beams in zip(images.tolist(), texts, strict=True)
        ]
        return np.array(scores)

    def _decode(self, ids: list[int]) -> str:
        said = []
        for index in ids:
            if index in (Vocabulary.end_id, Vocabulary.padding_id):
                break
            said.append(self._words[index])
        return " ".join(said)

    def _score(self, text: str, references: list[str]) -> float:
        hypothesis = self._weigh(_count_ngrams(text))
        total = sum(_similarity(hypothesis, self._weigh(_count_ngrams(reference))) for reference in references)
        return 10.0 * total / len(references)

    def _weigh(self, counts: Ngrams) -> Vector:
        weights: list[dict[tuple[str, ...], float]] = [{} for _ in range(MAX_N)]
        squares = [0.0] * MAX_N
        length = 0
        for ngram, count in counts.items():
            place = len(ngram) - 1
            weight = count * (self._log_images - math.log(max(1.0, self._documents[ngram])))
            weights[place][ngram] = weight
            squares[place] += weight**2
            if place == 1:
                length += count
        return weights, [math.sqrt(square) for square in squares], length


def _count_ngrams(text: str) -> Ngrams:
    words = text.split()
    return Counter(tuple(words[start : start + n]) for n in range(1, MAX_N + 1) for start in range(len(words) - n + 1))


def _similarity(hypothesis: Vector, reference: Vector) -> float:
    """Average the clipped cosine over n, with the penalty for a difference in length."""
    penalty = math.exp(-((hypothesis[2] - reference[2]) ** 2) / (2 * SIGMA**2))
    total = 0.0
    for ours, our_norm, theirs, their_norm in zip(*hypothesis[:2], *reference[:2], strict=True):
        product = sum(min(weight, theirs.get(ngram, 0.0)) * theirs.get(ngram, 0.0) for ngram, weight in ours.items())
        if our_norm and their_norm:
            total += product / (our_norm * their_norm)
    return penalty * total / MAX_N
