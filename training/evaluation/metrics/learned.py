"""Metrics of pretrained networks: CLIP-S, PAC-S and BERT-S. Their weights are in local folders that the user provides.

Nothing is downloaded. The folders are those of ``transformers``' ``save_pretrained``, with the tokeniser's files; one
that is missing or holds another network is a :class:`MetricError`, as is transformers that is not installed.
CLIP-S and PAC-S say how near a caption is to its photograph, by CLIP, and need no human captions; BERT-S how near it is
to the human captions, token by token, by the vectors of a BERT.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from training.data.photographs import ImageReader
from training.evaluation.metrics.metric import Metric, MetricError, mean_metric
from training.vision.torchvision_operators import declare_torchvision_operators

CLIP_S, PAC_S, BERT_S = "clip_s", "pac_s", "bert_s"
"""Names of the metrics, and of their folders of weights."""
BATCH = 32
SCALES = {CLIP_S: 2.5, PAC_S: 2.0}
"""w of max(w * cos, 0)."""
_PROMPT = "A photo depicts "
_MEAN, _STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_LAYERS = {("bert", 12): 9, ("bert", 24): 18, ("roberta", 12): 10, ("roberta", 24): 17}
"""Layer whose output BERTScore compares, by the kind and depth of the network, which the authors chose on human
judgements. Of other networks it is the last."""


def load_network(folder: Path, kind: str) -> tuple[Any, Any]:
    """Load the tokeniser and a network of a class of transformers, in evaluation mode."""
    if not folder.is_dir():
        raise MetricError(f"needs weights at {folder} (docs/evaluation.md)")
    declare_torchvision_operators()
    try:
        import transformers
    except ImportError as error:
        raise MetricError(f"needs transformers ({error}); pip install '.[metrics]'") from None
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = getattr(transformers, kind).from_pretrained(folder, local_files_only=True)
    except Exception as error:  # the library raises almost anything
        reason = str(error).strip().split("\n")[0]
        raise MetricError(f"{folder} has no {kind} that transformers reads ({reason})") from None
    return tokenizer, model.float().eval()


class ClipScore:
    """CLIP-S (Hessel et al., EMNLP 2021) and PAC-S (Sarto et al., CVPR 2023), which differ in weights and scale."""

    def __init__(self, folder: Path) -> None:
        """``folder``: a CLIP with its tokeniser; its name, a key of :data:`SCALES`, says which metric it is."""
        self.name, self._scale = folder.name, SCALES[folder.name]
        self._tokenizer, self._model = load_network(folder, "CLIPModel")
        self._size: int = self._model.config.vision_config.image_size
        self._longest: int = self._model.config.text_config.max_position_embeddings

    @torch.inference_mode()
    def embed_images(self, images: Sequence[str], read_image: ImageReader) -> NDArray[np.float32]:
        """Embed images, (n, d) unit vectors."""
        parts = []
        for start in range(0, len(images), BATCH):
            pixels = [self._pixels(read_image(image)) for image in images[start : start + BATCH]]
            pooled = self._model.vision_model(pixel_values=torch.stack(pixels)).pooler_output
            parts.append(functional.normalize(self._model.visual_projection(pooled), dim=1))
        return torch.cat(parts).numpy()

    @torch.inference_mode()
    def metric(self, image_vectors: NDArray[np.float32], captions: Sequence[str]) -> Metric:
        """Score a caption of each image: max(w * cos(image, "A photo depicts " + caption), 0)."""
        parts = []
        for start in range(0, len(captions), BATCH):
            texts = [_PROMPT + caption for caption in captions[start : start + BATCH]]
            tokens = self._tokenizer(
                texts, return_tensors="pt", padding=True, truncation=True, max_length=self._longest
            )
            found = self._model.text_model(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"])
            parts.append(functional.normalize(self._model.text_projection(found.pooler_output), dim=1))
        cosines = (torch.from_numpy(image_vectors) * torch.cat(parts)).sum(dim=1).numpy()
        return mean_metric(self.name, np.maximum(self._scale * cosines, 0))

    def _pixels(self, image_bgr: NDArray[np.uint8]) -> Tensor:
        """Preprocess as CLIP does: the shorter side to the network's size, bicubic; the centre; normalised RGB."""
        rgb = Image.fromarray(cv2.cvtColor(image_bgr, cv2.COLOR_BGR2RGB))
        factor = self._size / min(rgb.size)
        width, height = (max(self._size, int(side * factor)) for side in rgb.size)
        rgb = rgb.resize((width, height), Image.Resampling.BICUBIC)
        left, top = round((width - self._size) / 2), round((height - self._size) / 2)
        crop = np.asarray(rgb.crop((left, top, left + self._size, top + self._size)), np.float32) / 255
        normalised = (crop - np.array(_MEAN, np.float32)) / np.array(_STD, np.float32)
        return torch.from_numpy(normalised).permute(2, 0, 1)


class BertScore:
    """BERT-S: F1 of BERTScore (Zhang et al., ICLR 2020), the best over an image's human captions, not rescaled."""

    def __init__(self, folder: Path, *, idf: bool = False) -> None:
        """``folder``: a BERT or a RoBERTa with its tokeniser; ``idf``: weigh tokens by their inverse document frequency
        in the human captions.
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
