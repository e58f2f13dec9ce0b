"""What a detector learns from: which cells answer for which box, and how wrong they are.

A box belongs to the cells around its middle, on the maps whose stride suits its size. A cell's target for a class is
how sure the teacher was of the box, times the overlap of the cell's own box with it (VarifocalNet: Zhang et al., CVPR
2021), so that the score ranks boxes by both; its box learns by the generalised overlap (Rezatofighi et al., CVPR 2019).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from training.data.augmentation import View
from training.detection.labels import Boxes, Labels
from training.vision.backbone import IMAGE_SIZE, RawDetections
from training.vision.yolox import STRIDES

SIZES = ((0.0, 64.0), (40.0, 128.0), (96.0, float("inf")))
"""Longer side of the boxes, in pixels, that each map answers for; they overlap, so that either may be right."""
MIDDLE = 1.5
"""A cell answers for a box whose centre is nearer than so many strides, across and down."""
BOX_WEIGHT = 2.0
NEGATIVE_WEIGHT, NEGATIVE_POWER = 0.75, 2.0
"""Of a class that a cell does not have, times the wrong score to this power: easy cells hardly count."""
TYPICAL_MASS = 12.0
"""Scores of a photograph's answering cells, added up: what brings its loss to about 1. A constant, so that the loss of
a batch is the sum of its photographs', however they are shared out."""
VISIBLE = 0.35
"""Smallest share of a box that must be in a random view."""
SMALLEST = 3.0
"""Smallest side of a box in pixels that is worth looking for."""
UNSURE = 0.05
"""Where the best score of a cell is lower, its box means nothing."""


class Targets(NamedTuple):
    """Boxes of B frames, at most M each; the rest is padding with a score of 0."""

    boxes_xyxy: Tensor
    """(B, M, 4) float32, fractions of the frame."""
    class_ids: Tensor
    """(B, M) int64."""
    scores: Tensor
    """(B, M) float32."""
    sought: Tensor
    """(B, classes) bool, which classes were looked for: none in a frame without labels."""


def targets_of(labels: Labels, images: Sequence[str], views: Sequence[View]) -> Targets:
    """The boxes of photographs, as they lie in the views of them; photographs without labels are allowed."""
    boxes = [
        _seen(labels.boxes[image], view) if image in labels.boxes else None
        for image, view in zip(images, views, strict=True)
    ]
    most = max((len(each) for each in boxes if each is not None), default=0)
    count = len(images)
    targets = Targets(
        torch.zeros(count, most, 4),
        torch.zeros(count, most, dtype=torch.int64),
        torch.zeros(count, most),
        torch.zeros(count, len(labels.class_names), dtype=torch.bool),
    )
    for index, (image, each) in enumerate(zip(images, boxes, strict=True)):
        if each is not None:
            targets.boxes_xyxy[index, : len(each)] = torch.from_numpy(each.xyxy)
            targets.class_ids[index, : len(each)] = torch.from_numpy(each.class_ids)
            targets.scores[index, : len(each)] = torch.from_numpy(each.scores)
            targets.sought[index] = torch.from_numpy(labels.sought(image))
    return targets


def _seen(boxes: Boxes, view: View) -> Boxes:
    xyxy, shares = view.transform_boxes(boxes.xyxy)
    large = ((xyxy[:, 2:] - xyxy[:, :2]) * IMAGE_SIZE >= SMALLEST).all(axis=1)
    return Boxes(xyxy.astype(np.float32), boxes.class_ids, boxes.scores).chosen(large & (shares >= VISIBLE))


def detection_loss(found: RawDetections, targets: Targets, cells: Tensor, strides: Tensor) -> Tensor:
    """The sum of the losses of the frames.

    Args:
        found: by the detector.
        cells: (A, 2) centres in pixels, of the detector.
        strides: (A, 1) in pixels, of the detector.

    Returns:
        () float32; 0 where no frame has labels, with a gradient of 0.
    """
    # Under autocast a detector answers in 16 bits, too few for a sum over so many cells.
    found = RawDetections(*(part.float() for part in found))
    if not targets.scores.shape[1]:
        targets = _with_padding(targets)
    answers = answering_cells(targets, cells, strides)
    overlaps = _overlaps(found.boxes_xyxy.detach(), targets.boxes_xyxy)
    quality = answers * targets.scores[:, None] * overlaps  # (B, A, M)
    wanted = _by_class(quality, targets.class_ids, found.class_scores)
    sureness = _by_class(answers * targets.scores[:, None], targets.class_ids, found.class_scores)
    with torch.no_grad():
        wrong = found.class_scores**NEGATIVE_POWER * NEGATIVE_WEIGHT
        weight = torch.where(sureness > 0, sureness, wrong) * targets.sought[:, None]
    classes = functional.binary_cross_entropy_with_logits(_logits(found.class_scores), wanted, weight, reduction="sum")
    # Where boxes overlap, a cell's box is that of the smallest, unless the teacher was less sure of it.
    areas = _areas(targets.boxes_xyxy) / targets.scores.clamp(min=1e-6)
    costs, chosen = areas[:, None].expand_as(answers).masked_fill(~answers, torch.inf).min(dim=-1)
    frames, places = torch.nonzero(costs.isfinite(), as_tuple=True)
    which = chosen[frames, places]
    lost = 1 - generalised_overlaps(found.boxes_xyxy[frames, places], targets.boxes_xyxy[frames, which])
    boxes = (lost * targets.scores[frames, which]).sum() + 0 * found.boxes_xyxy.sum()
    return (classes + BOX_WEIGHT * boxes) / TYPICAL_MASS


def keeping_loss(found: RawDetections, before: RawDetections, kept: Tensor) -> Tensor:
    """How far a detector's answers are from those it gave before it learned: what keeps it from forgetting classes that
    its new labels do not show (Li and Hoiem, Learning without Forgetting, ECCV 2016).

    A class counts by how far off its score is (quality focal loss: Li et al., NeurIPS 2020), a box by how sure the cell
    was of it.

    Args:
        found: by the detector.
        before: by the detector as it was, on the same frames.
        kept: (B,) bool, the frames that count.

    Returns:
        () float32, the sum over the frames; 0 where none counts, with a gradient of 0.
    """
    found, before = (
        RawDetections(*(part.float()[kept] for part in found)),
        RawDetections(*(part.float()[kept] for part in before)),
    )
    with torch.no_grad():
        weight = (found.class_scores - before.class_scores) ** 2
    # Less what the answers from before have of it themselves: no difference, no loss.
    entropy = functional.binary_cross_entropy(before.class_scores, before.class_scores, weight, reduction="sum")
    classes = functional.binary_cross_entropy_with_logits(
        _logits(found.class_scores), before.class_scores, weight, reduction="sum"
    )
    sureness = before.class_scores.amax(dim=-1)
    sure = sureness > UNSURE
    lost = 1 - generalised_overlaps(found.boxes_xyxy[sure], before.boxes_xyxy[sure])
    boxes = (lost * sureness[sure]).sum() + 0 * found.boxes_xyxy.sum()
    return (classes - entropy + BOX_WEIGHT * boxes) / TYPICAL_MASS


def _logits(scores: Tensor) -> Tensor:
    """Of probabilities, however they came about; finite, and so are its gradients."""
    return scores.clamp(min=1e-12).log() - (-scores.clamp(max=1 - 1e-6)).log1p()


def _with_padding(targets: Targets) -> Targets:
    """Room for one box, so that there is something to take the smallest and largest of."""
    return Targets(
        functional.pad(targets.boxes_xyxy, (0, 0, 0, 1)),
        functional.pad(targets.class_ids, (0, 1)),
        functional.pad(targets.scores, (0, 1)),
        targets.sought,
    )


def answering_cells(targets: Targets, cells: Tensor, strides: Tensor) -> Tensor:
    """(B, A, M) bool, which cells answer for which boxes."""
    boxes = targets.boxes_xyxy[:, None] * IMAGE_SIZE  # (B, 1, M, 4)
    sizes = boxes[..., 2:] - boxes[..., :2]
    centres = (boxes[..., 2:] + boxes[..., :2]) / 2
    reach = strides[:, None]  # (A, 1, 1)
    # Inside the box, or else the one cell that its centre is in: no box is too small to be answered for.
    near = torch.minimum((sizes / 2).maximum(reach / 2), reach * MIDDLE)
    beside = ((cells[:, None] - centres).abs() <= near).all(dim=-1)
    longer = sizes.amax(dim=-1)
    suits = [
        (strides == stride) & (longer > smallest) & (longer <= largest)
        for stride, (smallest, largest) in zip(STRIDES, SIZES, strict=True)
    ]
    return beside & torch.stack(suits).any(dim=0) & (targets.scores[:, None] > 0)


def _by_class(values: Tensor, class_ids: Tensor, logits: Tensor) -> Tensor:
    """The largest of each class's (B, A, M) values, (B, A, classes); 0 where a class has none."""
    index = class_ids[:, None].expand(values.shape)
    return torch.zeros_like(logits).scatter_reduce(2, index, values, "amax")


def _overlaps(boxes: Tensor, others: Tensor) -> Tensor:
    """(B, A, 4) and (B, M, 4) -> intersection over union, (B, A, M)."""
    boxes, others = boxes[:, :, None], others[:, None]
    shared = _shared(boxes, others)
    return shared / (_areas(boxes) + _areas(others) - shared).clamp(min=1e-9)


def generalised_overlaps(boxes: Tensor, others: Tensor) -> Tensor:
    """(N, 4) and (N, 4) -> (N,): intersection over union, less the empty share of the smallest box around both."""
    shared = _shared(boxes, others)
    union = _areas(boxes) + _areas(others) - shared
    around = torch.cat(
        [torch.minimum(boxes[..., :2], others[..., :2]), torch.maximum(boxes[..., 2:], others[..., 2:])], dim=-1
    )
    hull = _areas(around).clamp(min=1e-9)
    return shared / union.clamp(min=1e-9) - (hull - union) / hull


def _shared(boxes: Tensor, others: Tensor) -> Tensor:
    sides = torch.minimum(boxes[..., 2:], others[..., 2:]) - torch.maximum(boxes[..., :2], others[..., :2])
    return sides.clamp(min=0).prod(dim=-1)


def _areas(boxes: Tensor) -> Tensor:
    return (boxes[..., 2:] - boxes[..., :2]).prod(dim=-1)
