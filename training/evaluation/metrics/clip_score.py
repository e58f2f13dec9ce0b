"""CLIP-S and PAC-S: how near a caption is to its photograph, by CLIP; no human captions are needed."""

from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from training.evaluation.metrics.learned import CLIP_S, PAC_S, load_network
from training.evaluation.metrics.metric import Metric, mean_metric

BATCH = 32
SCALES = {CLIP_S: 2.5, PAC_S: 2.0}
"""w of max(w * cos, 0)."""
_PROMPT = "A photo depicts "
_MEAN, _STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


class ClipScore:
    """CLIP-S (Hessel et al., EMNLP 2021) and PAC-S (Sarto et al., CVPR 2023), which differ in weights and scale."""

    def __init__(self, folder: Path) -> None:
        """``folder``: a CLIP with its tokeniser; its name, a key of :data:`SCALES`, says which metric it is.

        Raises:
            MetricError: transformers is not installed, or the folder is missing or has no CLIP.
        """
        self.name, self._scale = folder.name, SCALES[folder.name]
        self._tokenizer, self._model = load_network(folder, "CLIPModel")
        self._size: int = self._model.config.vision_config.image_size
        self._longest: int = self._model.config.text_config.max_position_embeddings

    @torch.inference_mode()
    def embed_images(
        self, images: Sequence[str], read_image: Callable[[str], NDArray[np.uint8]]
    ) -> NDArray[np.float32]:
        """Embed images, (n, d) unit vectors; ``read_image`` reads the (H, W, 3) uint8 BGR image of an id."""
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
