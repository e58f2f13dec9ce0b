"""Answer image messages: every image gets a Caption message with a status, whatever is wrong with the image.

:func:`caption_image` runs the engine; :func:`complete_answer` adds the evidence, for which it may have to wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header

from smart_caption_ros import captioning
from smart_caption_ros.captioning import Captioner
from smart_caption_ros.imaging.image_change import change_between, thumbnail
from smart_caption_ros.imaging.image_messages import ImageMessageError, decode_compressed, decode_image
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.evidence import Evidence, EvidenceCollector, coverage_reason
from smart_caption_ros.nodes.messages import message_without_text, to_message
from smart_caption_ros.nodes.serialised_image import SerialisedImage
from smart_caption_ros.text import shortened

ImageMessage: TypeAlias = Image | SerialisedImage | CompressedImage

_RECORDING_AGE_S = 3600.0
_MAX_REASON = 1000  # our own sentences are shorter; texts from outside are bounded where they enter a sentence


@dataclass(frozen=True)
class AnswerSettings:
    """Parameters that decide about answers.

    Attributes:
        camera: name of the camera.
        max_age_s: maximum age of an image that is captioned, and how far its stamp may lie in the future; 0 accepts
            any age.
        min_confidence: captions below it get STATUS_LOW_CONFIDENCE.
        max_pixels: larger images are not decoded.
        min_change: images that differ less from the last one captioned are not captioned; None captions every image.
    """

    camera: str
    max_age_s: float
    min_confidence: float
    max_pixels: int
    min_change: float | None = None


@dataclass(frozen=True)
class ImageAnswer:
    """The answer to one image.

    Attributes:
        message: the message to publish.
        work_s: time from the start of the work to the answer.
        image_bgr: the decoded image, uint8 (H, W, 3); None where it was not decoded, or is not needed any more.
        evidence: the caption with its evidence; None where the image was not captioned.
        detected: what the node's own detector found; None where there is none, or the image was not captioned.
    """

    message: Caption
    work_s: float
    image_bgr: NDArray[np.uint8] | None = None
    evidence: Evidence | None = None
    detected: tuple[captioning.DetectedObject, ...] | None = None


@dataclass(frozen=True)
class CaptionedImage:
    """An image whose turn has come: its caption, or the reason why it has none.

    Attributes:
        header: header of the image message.
        started_s: when its turn came, by the clock that the functions here are given.
        decoding_s: time to decode the message.
        age_s: age of the image when its turn came; None where it is unknown.
        image_bgr: the decoded image, uint8 (H, W, 3); None where it was not decoded, or is not needed any more.
        caption: the caption without evidence; None where the image was not captioned.
        status: STATUS_STALE or STATUS_ERROR where it was not captioned.
        reason: one sentence where it was not captioned.
        unchanged: whether it was not captioned because it differs too little; it gets no answer.
        thumbnail: what later images are compared with; None without `min_change`.
    """

    header: Header
    started_s: float
    decoding_s: float
    age_s: float | None
    image_bgr: NDArray[np.uint8] | None = None
    caption: captioning.Caption | None = None
    status: int = Caption.STATUS_ERROR
    reason: str = ""
    unchanged: bool = False
    thumbnail: NDArray[np.float32] | None = None


def caption_image(
    captioner: Captioner | None,
    image: ImageMessage,
    settings: AnswerSettings,
    *,
    age_s: float | None,
    reference: NDArray[np.float32] | None = None,
    guiding_objects: Callable[[Header], Sequence[captioning.DetectedObject] | None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CaptionedImage:
    """Decode and caption one image message; never raises.

    Args:
        captioner: the captioner; None while the node is unconfigured.
        image: the message; may be malformed.
        settings: the parameters.
        age_s: age of the image now; None for an image without a stamp, or where the clock has not started.
        reference: thumbnail of the last image captioned, for `min_change`; None captions this image in any case.
        guiding_objects: returns the objects that guide the words, by the header of the image, or None for those of the
            captioner's own detector; None where objects do not guide them.
        clock: monotonic clock in seconds.
    """
    started_s = clock()
    without_caption = CaptionedImage(image.header, started_s, decoding_s=0.0, age_s=age_s)
    if captioner is None:
        return replace(without_caption, reason="no engine is loaded: configure the node first")
    if settings.max_age_s and age_s is not None and abs(age_s) > settings.max_age_s:
        reason = _stale_reason(age_s, settings.max_age_s)
        return replace(without_caption, status=Caption.STATUS_STALE, reason=reason)
    try:
        if isinstance(image, CompressedImage):
            image_bgr = decode_compressed(image, max_pixels=settings.max_pixels)
        else:
            image_bgr = decode_image(image, max_pixels=settings.max_pixels)
        if settings.min_change is not None:
            seen = thumbnail(image_bgr)
            without_caption = replace(without_caption, thumbnail=seen)
            if reference is not None and change_between(reference, seen) < settings.min_change:
                return replace(without_caption, unchanged=True)
        decoding_s = clock() - started_s
        if guiding_objects is None:
            caption = captioner.caption(image_bgr)
        else:
            caption = captioner.caption(image_bgr, guiding_objects(image.header))
    except ImageMessageError as error:
        return replace(without_caption, reason=str(error))
    except Exception as error:  # an engine may raise anything, and one image must not end the node
        return replace(without_caption, reason=f"the engine failed on this image: {_description(error)}")
    return replace(without_caption, decoding_s=decoding_s, image_bgr=image_bgr, caption=caption)


def complete_answer(
    image: CaptionedImage,
    settings: AnswerSettings,
    collector: EvidenceCollector,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> ImageAnswer:
    """Collect the evidence for a caption and build the message; never raises.

    Args:
        image: the image, captioned or not.
        settings: the parameters.
        collector: collects objects and nouns.
        clock: the clock that :func:`caption_image` was given.
    """
    evidence: Evidence | None = None
    if image.caption is None:
        message = _without_text(image, settings, image.status, image.reason)
    else:
        try:
            evidence = collector.collect(image.caption, image.header)
            message = to_message(
                evidence.caption,
                image.header,
                camera=settings.camera,
                min_confidence=settings.min_confidence,
                grounding=evidence.grounding,
                coverage_reason=coverage_reason(evidence),
            )
            message.timing.detection_wait_ms = evidence.waited_s * 1000
        except Exception as error:
            evidence = None
            reason = f"the caption of this image cannot be published: {_description(error)}"
            message = _without_text(image, settings, Caption.STATUS_ERROR, reason)
    work_s = clock() - image.started_s
    message.timing.age_at_start_ms = (image.age_s or 0.0) * 1000
    message.timing.preprocess_ms += image.decoding_s * 1000
    message.timing.total_ms = work_s * 1000
    detected = image.caption.objects if image.caption is not None and collector.has_detector else None
    return ImageAnswer(message, work_s, image.image_bgr, evidence, detected)


def _description(error: Exception) -> str:
    return f"{type(error).__name__}: {shortened(str(error))}"


def _without_text(image: CaptionedImage, settings: AnswerSettings, status: int, reason: str) -> Caption:
    return message_without_text(status, shortened(reason, _MAX_REASON), image.header, camera=settings.camera)


def _stale_reason(age_s: float, max_age_s: float) -> str:
    if age_s < 0:
        return (
            f"the stamp of the image is {-age_s:.3f} s in the future, and max_age_s is {max_age_s:g}: the clocks of "
            "camera and node differ"
        )
    reason = f"the image is {age_s:.3f} s old, and max_age_s is {max_age_s:g}"
    if age_s > _RECORDING_AGE_S:  # no driver is that late: the clocks differ, or this is a recording
        reason += "; for a recording play its clock and set use_sim_time, or set max_age_s to 0"
    return reason
