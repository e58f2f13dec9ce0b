"""The classes of a captioner's detector."""

from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.sources.acvr import ACVR_CLASSES

DETECTION_CLASSES = (*ACVR_CLASSES[1:], *(name for name in COCO_CLASSES if name not in ACVR_CLASSES))
"""The classes of COCO in the order of the detector's scores, the classes of the ACRV challenge first; spelled as
:func:`smart_caption_ros.detection.class_names.normalise` returns them."""
