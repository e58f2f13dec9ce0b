"""Cached grid features of a frozen backbone, read by memory map."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from training.data.datasets import CaptionDataset
from training.models.mobilenet_v2 import MobileNetV2


def fingerprint(backbone: torch.nn.Module) -> str:
    """sha256 over the weights of a backbone: features of other weights are never taken for its own."""
    digest = hashlib.sha256()
    for name, tensor in sorted(backbone.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def load_or_extract(
    folder: Path,
    dataset: CaptionDataset,
    images: list[str],
    backbone: MobileNetV2,
    flip: bool,
    batch_size: int = 32,
) -> np.ndarray:
    """Features of ``images``, extracted at the first call and mapped from ``folder`` afterwards.

    Returns:
        Memory map (len(images), 2 if flip else 1, N, 1280) float16; the second view is the mirrored photograph.
    """
    key = hashlib.sha256(json.dumps([fingerprint(backbone), images, flip]).encode()).hexdigest()[:16]
    path = folder / f"grid-{key}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        views = 2 if flip else 1
        device = next(backbone.parameters()).device
        unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
        store = np.lib.format.open_memmap(
            unfinished, mode="w+", dtype=np.float16, shape=(len(images), views, 49, backbone.token_width)
        )
        with torch.inference_mode(), tqdm(total=len(images), desc="features", unit="image") as progress:
            for start in range(0, len(images), batch_size):
                frames = dataset.read_images(images[start : start + batch_size])
                for view in range(views):
                    shown = np.ascontiguousarray(frames[:, :, ::-1]) if view else frames
                    tokens = backbone(torch.from_numpy(shown).to(device))
                    store[start : start + len(frames), view] = tokens.cpu().numpy().astype(np.float16)
                progress.update(len(frames))
        store.flush()
        unfinished.rename(path)
    return np.load(path, mmap_mode="r")
