"""Assignment of cells to boxes, and the losses of correct, wrong and unlabelled output."""

import numpy as np
import pytest
import torch

from training.data.augmentation import View
from training.detection.labels import Boxes, Labels
from training.detection.loss import (
    Targets,
    assigned_cells,
    detection_loss,
    generalised_iou,
    keeping_loss,
    targets_of,
)
from training.vision.backbone import RawDetections
from training.vision.yolox import STRIDES, YoloxNano

DETECTOR = YoloxNano(("cup", "bed"))
WHOLE = View(0.0, 0.0, 1.0, 1.0, False)


def targets(*boxes: tuple[list[float], int, float]) -> Targets:
    """Make the targets of one frame whose labels cover both classes."""
    return Targets(
        torch.tensor([[box for box, _, _ in boxes]]).reshape(1, -1, 4),
        torch.tensor([[class_id for _, class_id, _ in boxes]]),
        torch.tensor([[score for *_, score in boxes]]),
        torch.ones(1, 2, dtype=torch.bool),
    )


def loss(found: RawDetections, wanted: Targets) -> float:
    return float(detection_loss(found, wanted, DETECTOR.cells, DETECTOR.strides))


def perfect(wanted: Targets) -> RawDetections:
    """Make the output of a perfect detector."""
    answers = assigned_cells(wanted, DETECTOR.cells, DETECTOR.strides)[0]
    scores, boxes = torch.full((1, len(DETECTOR.cells), 2), 1e-5), torch.zeros(1, len(DETECTOR.cells), 4)
    for index, class_id in enumerate(wanted.class_ids[0].tolist()):
        scores[0, answers[:, index], class_id] = 1 - 1e-5
        boxes[0, answers[:, index]] = wanted.boxes_xyxy[0, index]
    return RawDetections(scores, boxes)


@pytest.mark.parametrize("side", [4.0, 20.0, 50.0, 90.0, 120.0, 200.0])
@pytest.mark.parametrize("centre", [30.0, 113.0])
def test_every_box_is_assigned_cells_near_its_centre_on_maps_for_its_size(side: float, centre: float) -> None:
    box = [(centre - side / 2) / 224, (centre - side / 4) / 224, (centre + side / 2) / 224, (centre + side / 4) / 224]
    answers = assigned_cells(targets((box, 0, 1.0)), DETECTOR.cells, DETECTOR.strides)[0, :, 0]
    assert answers.any()
    strides = set(DETECTOR.strides[answers, 0].tolist())
    assert strides <= {stride for stride in STRIDES if side / stride <= 8 or stride == STRIDES[-1]}
    away = (DETECTOR.cells[answers] - centre).abs() / DETECTOR.strides[answers]
    assert float(away.max()) <= 1.5


def test_correct_output_has_almost_no_loss_and_wrong_output_has_more() -> None:
    wanted = targets(([0.1, 0.1, 0.4, 0.5], 0, 1.0), ([0.5, 0.4, 0.9, 0.95], 1, 1.0))
    right = perfect(wanted)
    assert loss(right, wanted) < 0.01
    shifted = RawDetections(right.class_scores, right.boxes_xyxy + 0.05)
    other_class = RawDetections(right.class_scores.flip(-1), right.boxes_xyxy)
    assert loss(shifted, wanted) > 0.05
    assert loss(other_class, wanted) > 1.0
    assert loss(right, targets(([0.1, 0.1, 0.4, 0.5], 0, 1.0))) > 0.1  # sees a bed that is not there


def test_a_box_is_weighted_by_its_score() -> None:
    sure, unsure = targets(([0.1, 0.1, 0.4, 0.5], 0, 1.0)), targets(([0.1, 0.1, 0.4, 0.5], 0, 0.3))
    nothing = RawDetections(torch.full((1, len(DETECTOR.cells), 2), 0.02), torch.zeros(1, len(DETECTOR.cells), 4))
    assert loss(nothing, unsure) < 0.5 * loss(nothing, sure)


def test_a_class_that_the_labels_do_not_cover_has_no_loss() -> None:
    wanted = targets(([0.1, 0.1, 0.4, 0.5], 0, 1.0))
    found = perfect(wanted)
    found.class_scores[..., 1] = 0.95
    assert loss(found, wanted) > 10
    not_labelled = wanted._replace(labelled_classes=torch.tensor([[True, False]]))
    assert loss(found, not_labelled) < 0.01


def test_a_photograph_without_labels_has_a_loss_and_a_gradient_of_zero() -> None:
    labels = Labels(("cup", "bed"))
    detector = YoloxNano(("cup", "bed"))
    found = detector(torch.randint(0, 256, (2, 224, 224, 3), dtype=torch.uint8))
    lost = detection_loss(found, targets_of(labels, ["a", "b"], [WHOLE, WHOLE]), detector.cells, detector.strides)
    lost.backward()
    assert float(lost.detach()) == 0
    assert all(parameter.grad is not None and not parameter.grad.any() for parameter in detector.parameters())


def test_the_loss_of_a_batch_is_the_sum_of_its_photographs() -> None:
    first = targets(([0.1, 0.1, 0.4, 0.5], 0, 1.0), ([0.5, 0.4, 0.9, 0.95], 1, 0.6))
    second = targets(([0.3, 0.2, 0.35, 0.28], 1, 1.0), ([0.0, 0.0, 0.0, 0.0], 0, 0.0))
    torch.manual_seed(0)
    found = RawDetections(
        torch.rand(2, len(DETECTOR.cells), 2), torch.rand(2, len(DETECTOR.cells), 4).sort(dim=-1).values
    )
    both = Targets(*(torch.cat(pair) for pair in zip(first, second, strict=True)))
    each = [loss(RawDetections(*(t[i : i + 1] for t in found)), wanted) for i, wanted in enumerate((first, second))]
    assert loss(found, both) == pytest.approx(sum(each), rel=1e-5)


def test_boxes_are_transformed_to_the_view_and_dropped_outside_it() -> None:
    boxes = Boxes(
        np.array([[0.5, 0.5, 0.75, 1.0], [0.0, 0.0, 0.2, 0.2]], np.float32), np.array([1, 0]), np.ones(2, np.float32)
    )
    labels = Labels(("cup", "bed"), {"a": boxes}, {"a": np.ones(2, bool)})
    found = targets_of(labels, ["a"], [View(0.5, 0.5, 1.0, 1.0, True)])
    assert found.class_ids.tolist() == [[1]]
    np.testing.assert_allclose(found.boxes_xyxy[0, 0], [0.5, 0.0, 1.0, 1.0], atol=1e-6)


def test_the_generalised_iou_of_disjoint_boxes_falls_with_their_distance() -> None:
    box = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    values = [float(generalised_iou(box, box + shift)) for shift in (0.0, 0.5, 2.0, 4.0)]
    assert values[0] == pytest.approx(1.0)
    assert values == sorted(values, reverse=True)
    assert values[-1] < -0.5


def test_output_in_bf16_is_summed_in_float32() -> None:
    wanted = targets(([0.2, 0.2, 0.6, 0.6], 1, 0.8))
    found = perfect(wanted)
    halves = RawDetections(*(part.bfloat16() for part in found))
    assert loss(halves, wanted) == pytest.approx(loss(RawDetections(*(part.float() for part in halves)), wanted))


def test_scores_of_0_and_1_have_a_finite_loss_and_gradient() -> None:
    wanted = targets(([0.1, 0.1, 0.4, 0.5], 0, 1.0))
    scores = torch.zeros(1, len(DETECTOR.cells), 2)
    scores[..., 1] = 1.0
    scores.requires_grad_()
    lost = detection_loss(RawDetections(scores, perfect(wanted).boxes_xyxy), wanted, DETECTOR.cells, DETECTOR.strides)
    lost.backward()
    assert torch.isfinite(lost)
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()


def test_the_keeping_loss_is_zero_for_equal_output_and_pulls_changed_output_back() -> None:
    before = perfect(targets(([0.1, 0.1, 0.4, 0.5], 0, 1.0), ([0.5, 0.4, 0.9, 0.95], 1, 0.7)))
    kept = torch.tensor([True])
    assert float(keeping_loss(before, before, kept)) == pytest.approx(0.0, abs=1e-6)
    scores = (before.class_scores * 0.8 + 0.1).requires_grad_()
    boxes = (before.boxes_xyxy + 0.02).requires_grad_()
    lost = keeping_loss(RawDetections(scores, boxes), before, kept)
    lost.backward()
    assert float(lost.detach()) > 0.05
    assert scores.grad is not None
    assert boxes.grad is not None
    assert bool((scores.grad.sign() == (scores - before.class_scores).sign()).all())
    sure = before.class_scores.amax(dim=-1) > 0.5
    nearer = RawDetections(scores.detach(), boxes.detach() - 0.05 * boxes.grad)
    assert float(keeping_loss(nearer, before, kept)) < float(lost.detach())
    assert float(boxes.grad[~sure].abs().max()) == 0


def test_the_keeping_loss_ignores_frames_that_are_not_kept() -> None:
    before = perfect(targets(([0.1, 0.1, 0.4, 0.5], 0, 1.0)))
    moved = RawDetections((1 - before.class_scores).requires_grad_(), before.boxes_xyxy + 0.3)
    lost = keeping_loss(moved, before, torch.tensor([False]))
    lost.backward()
    assert float(lost.detach()) == 0
