"""Clipping, areas and non-maximum suppression against the plain rules."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.detection.boxes import clip_boxes, non_maximum_suppression

# Whole numbers: no IoU is within a rounding error of a limit by accident.
boxes = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 20), st.integers(1, 20)).map(
    lambda box: (box[0], box[1], box[0] + box[2], box[1] + box[3])
)
CUP = np.array([10, 10, 30, 30], np.float32)


def plain_iou(first, second):
    wide = min(first[2], second[2]) - max(first[0], second[0])
    tall = min(first[3], second[3]) - max(first[1], second[1])
    shared = max(wide, 0) * max(tall, 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return shared / (sum(areas) - shared)


@given(boxes, st.integers(1, 40), st.integers(1, 40))
def test_a_clipped_box_lies_in_the_frame_and_keeps_its_dtype(box, width, height):
    for dtype in (np.float32, np.float64):
        clipped = clip_boxes(np.array(box, dtype), width, height)
        assert clipped.dtype == dtype
        assert clipped.tolist() == [min(box[0], width), min(box[1], height), min(box[2], width), min(box[3], height)]
    assert clip_boxes(np.array([-3.0, -4.0, 5.0, 6.0]), width, height)[:2].tolist() == [0, 0]


@given(st.lists(st.tuples(boxes, st.integers(0, 2)), max_size=25), st.randoms(use_true_random=False))
def test_suppression_agrees_with_the_plain_rule(candidates, random):
    scores = [(place + 1) / 100 for place in range(len(candidates))]
    random.shuffle(scores)
    expected = []
    for place in sorted(range(len(candidates)), key=lambda place: -scores[place]):
        box, class_id = candidates[place]
        if all(candidates[k][1] != class_id or plain_iou(candidates[k][0], box) <= 0.451 for k in expected):
            expected.append(place)
    kept = non_maximum_suppression(
        np.array([box for box, _ in candidates], np.float32).reshape(-1, 4),
        np.array(scores, np.float32),
        np.array([class_id for _, class_id in candidates], np.int64),
        0.451,
    )
    assert kept.tolist() == expected
