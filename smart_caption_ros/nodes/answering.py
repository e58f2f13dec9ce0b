"""One image message in, one answer out: the status that every image gets, whatever is wrong with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CompressedImage, Image

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.imaging import ImageMessageError
from smart_caption_ros.imaging.image_messages import decode_compressed, decode_image
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.evidence import Evidence, Gatherer
from smart_caption_ros.nodes.messages import answer_without_text, to_message
from smart_caption_ros.nodes.serialised_image import SerialisedImage

ImageMessage: TypeAlias = Image | SerialisedImage | CompressedImage


@dataclass(frozen=True)
class Policy:
    """What the parameters say about answers.

    Attributes:
        camera: the camera's name.
        max_age_s: older images are not captioned; 0 captions them all.
        min_confidence: captions below it get STATUS_LOW_CONFIDENCE.
    """

    camera: str
    max_age_s: float
    min_confidence: float


@dataclass(frozen=True)
class Answer:
    """The message to send and, where the image was captioned, what its overlay shows.

    Attributes:
        message: the answer.
        image_bgr: the decoded image, uint8 HxWx3.
        evidence: what the captioner said about it, with the objects and the nouns.
        work_s: time from the start of the work to the answer.
    """

    message: Caption
    work_s: float
    image_bgr: NDArray[np.uint8] | None = None
    evidence: Evidence | None = None


def answer(
    captioner: Captioner | None,
    image: ImageMessage,
    policy: Policy,
    *,
    gatherer: Gatherer,
    age_s: float | None,
    dropped: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """Captions one image message; never raises.

    Args:
        captioner: the engine; None while the node is unconfigured.
        image: the message, however broken.
        policy: what the parameters say.
        gatherer: finds the objects and matches the nouns with them.
        age_s: how old the image is now; None when it has no stamp.
        dropped: images that gave way to this one.
        clock: seconds that only go forward.
    """
    started_s = clock()
    picture: NDArray[np.uint8] | None = None
    evidence: Evidence | None = None
    decode_s = 0.0
    if captioner is None:
        message = _without_text(image, policy, Caption.STATUS_ERROR, "no engine is loaded: configure the node first")
    elif policy.max_age_s and age_s is not None and age_s > policy.max_age_s:
        message = _without_text(image, policy, Caption.STATUS_STALE, _stale_reason(age_s, policy.max_age_s))
    else:
        try:
            picture = decode_compressed(image) if isinstance(image, CompressedImage) else decode_image(image)
            decode_s = clock() - started_s
            evidence = gatherer.gather(captioner.caption(picture), image.header)
        except ImageMessageError as error:
            message = _without_text(image, policy, Caption.STATUS_ERROR, str(error))
        except Exception as error:  # one image must never end the node, whatever an engine throws
            reason = f"the engine failed on this image: {type(error).__name__}: {error}"
            message = _without_text(image, policy, Caption.STATUS_ERROR, reason)
        else:
            message = to_message(
                evidence.caption,
                image.header,
                camera=policy.camera,
                min_confidence=policy.min_confidence,
                grounding=evidence.grounding,
            )
    work_s = clock() - started_s
    message.timing.age_at_start_ms = (age_s or 0.0) * 1000
    message.timing.preprocess_ms += decode_s * 1000
    message.timing.total_ms = work_s * 1000
    message.timing.dropped_frames = dropped
    return Answer(message, work_s, picture, evidence)


def _without_text(image: ImageMessage, policy: Policy, status: int, reason: str) -> Caption:
    return answer_without_text(status, reason, image.header, camera=policy.camera)


def _stale_reason(age_s: float, max_age_s: float) -> str:
    reason = f"the image is {age_s:.3f} s old, and max_age_s is {max_age_s:g}"
    if age_s > 3600:  # no camera is an hour behind: its clock is another one, or this is a recording
        reason += "; for a recording play its clock and set use_sim_time, or set max_age_s to 0"
    return reason
