"""What a detector finds in a frame: the scores of its classes."""

import numpy as np

from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.detection.detections import ClassScores

BOX = (0.0, 0.0, 5.0, 5.0)


def test_a_class_of_several_objects_has_the_highest_of_their_scores():
    objects = [DetectedObject("diningtable", 60, score, BOX) for score in (0.4, 0.7, 0.5)]
    scores = ClassScores.of_objects([*objects, DetectedObject("dog", 16, 0.9, BOX)])
    assert scores == ClassScores({"dining table": 0.7, "dog": 0.9}, complete=False)


def test_scores_of_all_classes_are_limited_and_classes_that_are_no_object_are_left_out():
    highest = np.array([0.5, 1.5, np.nan, 0.9, 0.25], np.float32)
    scores = ClassScores.of_classes(highest, ("dog", "cat", "cow", "background", "dog"))
    assert scores == ClassScores({"dog": 0.5, "cat": 1.0, "cow": 0.0}, complete=True)
