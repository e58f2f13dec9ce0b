"""What the detector of a captioner finds."""

from smart_caption_ros.datasets.acvr import ACVR_CLASSES

DETECTION_CLASSES = (
    *ACVR_CLASSES[1:],
    "bicycle", "car", "motorcycle", "bus", "truck", "boat", "traffic light", "bench", "bird", "cat", "dog", "horse",
    "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard", "sports ball", "skateboard",
    "surfboard", "remote", "vase", "teddy bear",
)  # fmt: skip
"""The classes of the ACRV challenge and those others of COCO that photographs of homes and streets are full of, in the
order of a new head's scores; spelt as :func:`smart_caption_ros.class_names.normalise` spells them."""
