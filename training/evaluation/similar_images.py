"""Similar images by the features of a fixed network, for CIDErBtw.

The network is EfficientNet-Lite1 with the weights that Google trained on ImageNet, whatever captioner is evaluated, so
that CIDErBtw of all captioners refers to the same similar images.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from smart_caption_ros.imaging import squash
from training.paths import data_folder

SIMILAR_IMAGES = 5
"""Similar images of each image, as in the paper."""
NETWORK = "efficientnet_lite1"
_BATCH = 16


def photograph_features(
    images: Sequence[str], read_image: Callable[[str], np.ndarray]
) -> dict[str, NDArray[np.float32]]:
    """Compute a feature vector of each photograph: the mean of the network's last feature map, of length 1.

    Args:
        images: image ids.
        read_image: reads an image, (H, W, 3) uint8 BGR.

    Returns:
        (1280,) float32 by image id.

    Raises:
        BackboneError: the package with the weights is not installed.
        DataError: an image is missing or broken.
    """
    # Imported here, because scores without similar images need no torch.
    import torch

    from training.vision.backbone import IMAGE_SIZE
    from training.vision.released_weights import load_backbone, locate

    network = load_backbone(locate(NETWORK, data_folder() / "backbones"))
    features: dict[str, NDArray[np.float32]] = {}
    with torch.inference_mode():
        for start in tqdm(range(0, len(images), _BATCH), desc="similar images", unit="batch"):
            batch = images[start : start + _BATCH]
            frames = np.stack([squash(read_image(image), (IMAGE_SIZE, IMAGE_SIZE)) for image in batch])
            pooled = network(torch.from_numpy(frames)).mean(dim=1)
            features.update(zip(batch, torch.nn.functional.normalize(pooled).numpy(), strict=True))
    return features


def similar_images(
    features: Mapping[str, NDArray[np.float32]],
    images: Sequence[str],
    domains: Mapping[str, str] | None = None,
    count: int = SIMILAR_IMAGES,
) -> dict[str, list[str]]:
    """Find the most similar images of each image, the most similar first.

    Args:
        features: unit vectors by image id, (D,) float32; similarity is their scalar product.
        images: image ids to choose from.
        domains: domain of images; similar images are of the same domain, and those without one of none.
        count: number of similar images; fewer where a domain has no more.
    """
    by_domain: dict[str | None, list[str]] = {}
    for image in images:
        by_domain.setdefault((domains or {}).get(image), []).append(image)
    similar: dict[str, list[str]] = {}
    for members in by_domain.values():
        vectors = np.stack([features[image] for image in members])
        similarity = vectors @ vectors.T
        np.fill_diagonal(similarity, -np.inf)
        nearest = np.argsort(-similarity, axis=1, kind="stable")[:, : min(count, len(members) - 1)]
        similar.update({image: [members[place] for place in row] for image, row in zip(members, nearest, strict=True)})
    return similar
