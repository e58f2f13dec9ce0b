"""What the detector of a captioner finds."""

from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.sources.acvr import ACVR_CLASSES

DETECTION_CLASSES = (*ACVR_CLASSES[1:], *(name for name in COCO_CLASSES if name not in ACVR_CLASSES))
"""COCO's, those of the ACRV challenge first, in the order of the detector's scores; spelt as
:func:`smart_caption_ros.detection.class_names.normalise` spells them."""
