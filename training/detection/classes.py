"""What the detector of a captioner finds."""

from smart_caption_ros.datasets.acvr import ACVR_CLASSES

DETECTION_CLASSES = (
    *ACVR_CLASSES[1:],
    "bicycle", "car", "motorcycle", "bus", "truck", "boat", "traffic light", "bench", "bird", "cat", "dog", "horse",
    "cow", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee", "sports ball", "skateboard", "surfboard",
    "vase",
)  # fmt: skip
"""The classes of the ACRV challenge and those others of COCO of which a teacher finds about a hundred or more in
Flickr8k and the photographs of rooms, in the order of a new head's scores; spelt as
:func:`smart_caption_ros.class_names.normalise` spells them."""
