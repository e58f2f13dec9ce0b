"""Names of object classes, as detectors and data sets write them, in one spelling."""

# Spellings of the same name, not synonyms: joined words, abbreviations, and the two Englishes.
SPELLINGS = {
    "aeroplane": "airplane",
    "cellphone": "cell phone",
    "diningtable": "dining table",
    "hair dryer": "hair drier",
    "hairdryer": "hair drier",
    "hotdog": "hot dog",
    "motorbike": "motorcycle",
    "pottedplant": "potted plant",
    "racquet": "racket",
    "surf board": "surfboard",
    "teddybear": "teddy bear",
    "tennis racquet": "tennis racket",
    "tv": "television",
    "tvmonitor": "television",
    "wineglass": "wine glass",
}

COCO_CLASSES = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee", "skis",
    "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich",
    "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch", "potted plant", "bed",
    "dining table", "toilet", "television", "laptop", "mouse", "remote", "keyboard", "cell phone", "microwave",
    "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase", "scissors", "teddy bear", "hair drier",
    "toothbrush",
)  # fmt: skip
"""The 80 classes of COCO in their order, as :func:`normalise` spells them."""

NO_OBJECTS = frozenset({"", "n/a", "none", "bg", "background"})
"""Normalised names in lists of classes that stand for no object."""


def normalise(name: str) -> str:
    """Lower case, spaces for hyphens and underscores, one spelling: ``Dining_Table`` -> dining table."""
    plain = " ".join(name.lower().replace("_", " ").replace("-", " ").split())
    return SPELLINGS.get(plain, plain)
