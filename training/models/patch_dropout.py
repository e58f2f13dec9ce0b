"""PatchDropout (Liu et al., WACV 2023): a training step sees a random part of the visual tokens of each image."""

import torch

from training.models.captioner import Visual


def drop_patches(visual: Visual, share: float) -> Visual:
    """Leave out visual tokens at random, others of each image; those that remain keep their order.
    ``share``: of the N tokens, in [0, 1); at least one token remains. Padding is left out first.

    Returns:
        ``visual`` with N - floor(share * N) tokens. Drawn with torch's generator.
    """
    count = visual.tokens.shape[1]
    kept = count - int(share * count)
    if kept == count:
        return visual
    order = torch.rand(visual.tokens.shape[:2], device=visual.tokens.device)
    if visual.mask is not None:
        order = order + visual.mask
    places = order.topk(kept, dim=1).indices.sort(dim=1).values
    rows = torch.arange(len(places), device=places.device).unsqueeze(1)
    return visual._replace(
        tokens=visual.tokens[rows, places],
        mask=None if visual.mask is None else visual.mask[rows, places],
        boxes_xyxy=None if visual.boxes_xyxy is None else visual.boxes_xyxy[rows, places],
    )
