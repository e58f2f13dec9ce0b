"""BERT-S: how near a caption is to the human captions, token by token, by the vectors of a BERT."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from training.evaluation.metrics.learned import BERT_S, load_network
from training.evaluation.metrics.metric import Metric, mean_metric

BATCH = 32
_LAYERS = {("bert", 12): 9, ("bert", 24): 18, ("roberta", 12): 10, ("roberta", 24): 17}
"""Layer whose output BERTScore compares, by the kind and depth of the network, which the authors chose on human
judgements. Of other networks it is the last."""


class BertScore:
    """BERT-S: F1 of BERTScore (Zhang et al., ICLR 2020), the best over an image's human captions, not rescaled."""

    def __init__(self, folder: Path, *, idf: bool = False) -> None:
        """
        Args:
            folder: a BERT or a RoBERTa with its tokeniser.
            idf: weigh tokens by their inverse document frequency in the human captions.

        Raises:
            MetricError: transformers is not installed, or the folder is missing or has no such network.
        """
        self._idf = idf
        self._tokenizer, self._model = load_network(folder, "AutoModel")
        config = self._model.config
        self._layer = _LAYERS.get((config.model_type, config.num_hidden_layers), config.num_hidden_layers)
        self._longest = min(self._tokenizer.model_max_length, config.max_position_embeddings - 2)

    def metric(self, captions: Sequence[str], references: Sequence[Sequence[str]]) -> Metric:
        """Score a caption of each image against the image's human captions."""
        texts = list(dict.fromkeys([*captions, *(text for group in references for text in group)]))
        ids = dict(zip(texts, map(self._ids, texts), strict=True))
        weights = self._token_weights([ids[text] for group in references for text in group])
        vectors = self._embed(ids)
        scores = [
            max(_f1(vectors[caption], vectors[text], weights(ids[caption]), weights(ids[text])) for text in group)
            for caption, group in zip(captions, references, strict=True)
        ]
        return mean_metric(BERT_S, scores)

    def _ids(self, text: str) -> list[int]:
        found: list[int] = self._tokenizer(text.strip(), truncation=True, max_length=self._longest)["input_ids"]
        return found

    def _token_weights(self, references: Sequence[Sequence[int]]) -> Callable[[Sequence[int]], Tensor]:
        """Return the function from ids to weights: inverse document frequency, or 1 for all but the special tokens."""
        if not self._idf:
            special = {self._tokenizer.cls_token_id, self._tokenizer.sep_token_id}
            return lambda ids: torch.tensor([float(index not in special) for index in ids])
        counts = Counter(index for ids in references for index in set(ids))
        total = math.log(len(references) + 1)
        weights = defaultdict(lambda: total, {index: total - math.log(n + 1) for index, n in counts.items()})
        return lambda ids: torch.tensor([weights[index] for index in ids])

    @torch.inference_mode()
    def _embed(self, ids: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
        """Compute the unit vectors (tokens, d) of texts by their tokens."""
        texts = sorted(ids, key=lambda text: len(ids[text]))
        vectors: dict[str, Tensor] = {}
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            longest = max(len(ids[text]) for text in batch)
            padding = self._tokenizer.pad_token_id or 0
            padded = torch.tensor([[*ids[text], *[padding] * (longest - len(ids[text]))] for text in batch])
            mask = torch.tensor([[1] * len(ids[text]) + [0] * (longest - len(ids[text])) for text in batch])
            layers = self._model(input_ids=padded, attention_mask=mask, output_hidden_states=True).hidden_states
            for text, row in zip(batch, functional.normalize(layers[self._layer], dim=2), strict=True):
                vectors[text] = row[: len(ids[text])]
        return vectors


def _f1(caption: Tensor, reference: Tensor, caption_weights: Tensor, reference_weights: Tensor) -> float:
    """Match each token to the most similar one of the other text and combine precision and recall; 0 without tokens."""
    similar = caption @ reference.T
    precision = _weighted_mean(similar.amax(dim=1), caption_weights)
    recall = _weighted_mean(similar.amax(dim=0), reference_weights)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _weighted_mean(values: Tensor, weights: Tensor) -> float:
    total = float(weights.sum())
    return float((values * weights).sum()) / total if total else 0.0
