"""The loss of a detector: assignment of cells to boxes, classification and box regression.

A box is assigned to the cells around its centre, on the maps whose stride fits its size. A cell's target for a class is
the score of the label times the IoU of the cell's predicted box with it (VarifocalNet: Zhang et al., CVPR 2021), so
that the predicted score ranks boxes by both; the box is trained with the generalised IoU (Rezatofighi et al., CVPR
2019). The IoU functions are ours: PyPI's torchvision cannot be imported beside the CPU build of the pinned torch.
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
"""For each map, the range of the longer side of its boxes in pixels; neighbouring ranges overlap."""
CENTRE_RADIUS = 1.5
"""Largest distance of a cell from the centre of its box, in strides, horizontally and vertically."""
BOX_WEIGHT = 2.0
NEGATIVE_WEIGHT, NEGATIVE_POWER = 0.75, 2.0
"""Loss weight of a class that a cell does not have: the first times the predicted score to the second, so that easy
cells have little weight."""
NORMALISER = 12.0
"""Typical sum of the scores of an image's assigned cells, which brings the loss of an image to about 1. It is a
constant, so that the loss of a batch is the sum of its images', however they are divided among processes."""
SMALLEST_SHARE = 0.35
"""Smallest share of a box's area that must be inside a random view."""
SMALLEST_SIDE = 3.0
"""Smallest side of a box in pixels."""
BACKGROUND_SCORE = 0.05
"""A cell whose best score is lower has no meaningful box."""


class Targets(NamedTuple):
    """Boxes of B frames, at most M each; the rest is padding with a score of 0."""

    boxes_xyxy: Tensor
    """(B, M, 4) float32, fractions of the frame."""
    class_ids: Tensor
    """(B, M) int64."""
    scores: Tensor
    """(B, M) float32."""
    labelled_classes: Tensor
    """(B, classes) bool, the classes that the labels cover; none in a frame without labels."""


def targets_of(labels: Labels, images: Sequence[str], views: Sequence[View]) -> Targets:
    """Transform the labels of images to random views of the images; images without labels are allowed."""
    boxes = [
        _boxes_in_view(labels.boxes[image], view) if image in labels.boxes else None
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
            targets.labelled_classes[index] = torch.from_numpy(labels.labelled_classes(image))
    return targets


def _boxes_in_view(boxes: Boxes, view: View) -> Boxes:
    xyxy, shares = view.transform_boxes(boxes.xyxy)
    large = ((xyxy[:, 2:] - xyxy[:, :2]) * IMAGE_SIZE >= SMALLEST_SIDE).all(axis=1)
    return Boxes(xyxy.astype(np.float32), boxes.class_ids, boxes.scores).select(large & (shares >= SMALLEST_SHARE))


def detection_loss(found: RawDetections, targets: Targets, cells: Tensor, strides: Tensor) -> Tensor:
    """Sum the losses of the frames.

    Args:
        found: output of the detector.
        cells: (A, 2) centres of the detector's cells, in pixels.
        strides: (A, 1) strides of the cells, in pixels.

    Returns:
        () float32; 0 where no frame has labels, with a gradient of 0.
    """
    # Under autocast the output has 16 bits, too few for a sum over so many cells.
    found = RawDetections(*(part.float() for part in found))
    if not targets.scores.shape[1]:
        targets = _with_padding(targets)
    assigned = assigned_cells(targets, cells, strides)
    iou = _iou(found.boxes_xyxy.detach(), targets.boxes_xyxy)
    quality = assigned * targets.scores[:, None] * iou  # (B, A, M)
    target_scores = _by_class(quality, targets.class_ids, found.class_scores)
    confidence = _by_class(assigned * targets.scores[:, None], targets.class_ids, found.class_scores)
    with torch.no_grad():
        wrong = found.class_scores**NEGATIVE_POWER * NEGATIVE_WEIGHT
        weight = torch.where(confidence > 0, confidence, wrong) * targets.labelled_classes[:, None]
    classes = functional.binary_cross_entropy_with_logits(
        _logits(found.class_scores), target_scores, weight, reduction="sum"
    )
    # A cell that is assigned to several boxes is trained on the one with the smallest area divided by score.
    areas = _areas(targets.boxes_xyxy) / targets.scores.clamp(min=1e-6)
    costs, chosen = areas[:, None].expand_as(assigned).masked_fill(~assigned, torch.inf).min(dim=-1)
    frames, places = torch.nonzero(costs.isfinite(), as_tuple=True)
    which = chosen[frames, places]
    lost = 1 - generalised_iou(found.boxes_xyxy[frames, places], targets.boxes_xyxy[frames, which])
    boxes = (lost * targets.scores[frames, which]).sum() + 0 * found.boxes_xyxy.sum()
    return (classes + BOX_WEIGHT * boxes) / NORMALISER


def keeping_loss(found: RawDetections, before: RawDetections, kept: Tensor) -> Tensor:
    """Compute the distance of a detector's output from that of its first weights, so that it keeps its output on images
    without labels (Li and Hoiem, Learning without Forgetting, ECCV 2016).

    A class is weighted by the difference of its scores (quality focal loss: Li et al., NeurIPS 2020), a box by the best
    score that the first weights gave to its cell.

    Args:
        found: output of the detector.
        before: output of the first weights on the same frames.
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
    # The entropy of the first scores is subtracted, so that equal scores have a loss of 0.
    entropy = functional.binary_cross_entropy(before.class_scores, before.class_scores, weight, reduction="sum")
    classes = functional.binary_cross_entropy_with_logits(
        _logits(found.class_scores), before.class_scores, weight, reduction="sum"
    )
    confidence = before.class_scores.amax(dim=-1)
    has_box = confidence > BACKGROUND_SCORE
    lost = 1 - generalised_iou(found.boxes_xyxy[has_box], before.boxes_xyxy[has_box])
    boxes = (lost * confidence[has_box]).sum() + 0 * found.boxes_xyxy.sum()
    return (classes - entropy + BOX_WEIGHT * boxes) / NORMALISER


def _logits(scores: Tensor) -> Tensor:
    """Compute the logits of probabilities, finite and with finite gradients."""
    return scores.clamp(min=1e-12).log() - (-scores.clamp(max=1 - 1e-6)).log1p()


def _with_padding(targets: Targets) -> Targets:
    """Add one padded box, since minima over no boxes are not defined."""
    return Targets(
        functional.pad(targets.boxes_xyxy, (0, 0, 0, 1)),
        functional.pad(targets.class_ids, (0, 1)),
        functional.pad(targets.scores, (0, 1)),
        targets.labelled_classes,
    )


def assigned_cells(targets: Targets, cells: Tensor, strides: Tensor) -> Tensor:
    """Assign cells to boxes, (B, A, M) bool."""
    boxes = targets.boxes_xyxy[:, None] * IMAGE_SIZE  # (B, 1, M, 4)
    sizes = boxes[..., 2:] - boxes[..., :2]
    centres = (boxes[..., 2:] + boxes[..., :2]) / 2
    reach = strides[:, None]  # (A, 1, 1)
    # Cells inside the box, or the cell of its centre where the box is smaller than a cell.
    near = torch.minimum((sizes / 2).maximum(reach / 2), reach * CENTRE_RADIUS)
    beside = ((cells[:, None] - centres).abs() <= near).all(dim=-1)
    longer = sizes.amax(dim=-1)
    suits = [
        (strides == stride) & (longer > smallest) & (longer <= largest)
        for stride, (smallest, largest) in zip(STRIDES, SIZES, strict=True)
    ]
    return beside & torch.stack(suits).any(dim=0) & (targets.scores[:, None] > 0)


def _by_class(values: Tensor, class_ids: Tensor, logits: Tensor) -> Tensor:
    """Compute the maximum of the (B, A, M) values of each class, (B, A, classes); 0 for a class without values."""
    index = class_ids[:, None].expand(values.shape)
    return torch.zeros_like(logits).scatter_reduce(2, index, values, "amax")


def _iou(boxes: Tensor, others: Tensor) -> Tensor:
    """Compute the IoU of (B, A, 4) and (B, M, 4) boxes, (B, A, M)."""
    boxes, others = boxes[:, :, None], others[:, None]
    shared = _intersections(boxes, others)
    return shared / (_areas(boxes) + _areas(others) - shared).clamp(min=1e-9)


def generalised_iou(boxes: Tensor, others: Tensor) -> Tensor:
    """Compute the generalised IoU of pairs of boxes, (N, 4) and (N, 4) -> (N,): the IoU minus the empty share of the
    smallest box around both."""
    shared = _intersections(boxes, others)
    union = _areas(boxes) + _areas(others) - shared
    around = torch.cat(
        [torch.minimum(boxes[..., :2], others[..., :2]), torch.maximum(boxes[..., 2:], others[..., 2:])], dim=-1
    )
    hull = _areas(around).clamp(min=1e-9)
    return shared / union.clamp(min=1e-9) - (hull - union) / hull


def _intersections(boxes: Tensor, others: Tensor) -> Tensor:
    sides = torch.minimum(boxes[..., 2:], others[..., 2:]) - torch.maximum(boxes[..., :2], others[..., :2])
    return sides.clamp(min=0).prod(dim=-1)


def _areas(boxes: Tensor) -> Tensor:
    return (boxes[..., 2:] - boxes[..., :2]).prod(dim=-1)
