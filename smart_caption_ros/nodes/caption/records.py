"""The two records that an image becomes in the caption node: as it was received, and as it is answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header

from smart_caption_ros import captioning
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.caption.evidence import Evidence
from smart_caption_ros.nodes.caption.model import Model

ImageMessage: TypeAlias = Image | CompressedImage


@dataclass(frozen=True)
class ReceivedImage:
    """An image message and the time of its arrival, time.monotonic()."""

    message: ImageMessage
    at_s: float


@dataclass
class Answer:
    """What is published for one image: its caption, or a status and the reason why it has none.

    The worker makes it; the camera adds evidence and message.

    Attributes:
        header: header of the image message.
        received_s: when the image arrived, time.monotonic().
        started_s: when the work on it began, by the same clock.
        age_s: age of the image at that time, negative for a stamp in the future; None where it is unknown.
        captioned_s: when its caption was there, by the same clock, from which the wait for detections counts; 0 where
            it was not captioned.
        decoding_s: time to decode the message.
        model: what captioned it; None while the node is unconfigured.
        image_bgr: the decoded image, uint8 (H, W, 3); None where it was not decoded, or is not needed any more.
        thumbnail: what later images are compared with, for `trigger` change; else None.
        caption: the caption, with the objects of the node's own detector; None where the image was not captioned.
        status: STATUS_STALE or STATUS_ERROR where it was not captioned.
        reason: one sentence where it was not captioned.
        is_unchanged: whether it was not captioned because it differs too little; nothing is published then.
        dropped: images that newer ones replaced since the answer before.
        evidence: the caption with its evidence; None where the image was not captioned.
        message: the message to publish.
    """

    header: Header
    received_s: float
    started_s: float
    age_s: float | None
    captioned_s: float = 0.0
    decoding_s: float = 0.0
    model: Model | None = None
    image_bgr: NDArray[np.uint8] | None = None
    thumbnail: NDArray[np.float32] | None = None
    caption: captioning.Caption | None = None
    status: int = Caption.STATUS_ERROR
    reason: str = ""
    is_unchanged: bool = False
    dropped: int = 0
    evidence: Evidence | None = None
    message: Caption = field(default_factory=Caption)
