"""Caption the images of bags: serialised Caption messages with the headers of the images."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smart_caption_ros.bags.message_types import CAPTION, message_types, typestore
from smart_caption_ros.caption_messages import to_message
from smart_caption_ros.captioning import Captioner, EngineError, Timing
from smart_caption_ros.captioning.captioner import NO_DETECTOR
from smart_caption_ros.grounding import NounCoverage, guide_words
from smart_caption_ros.grounding.named_objects import ground_caption
from smart_caption_ros.grounding.objects_guide import AUTO, STRENGTH
from smart_caption_ros.imaging import ImageMessageError
from smart_caption_ros.record import ACCEPT_ALL, CaptionRecord, CaptionStatus, Trust
from smart_caption_ros.sources.bag import DECODERS, read_message
from smart_caption_ros.sources.bag_storage import StoredMessage


@dataclass(frozen=True)
class ModelSettings:
    """Settings of a captioner, which can be sent to other processes and machines.

    Attributes:
        detector: ONNX detector, or "none" for no detector; None takes the bundle's own.
        guide_strength: bias of the words of an object with score 1, natural logarithm; None takes the default.
    """

    bundle: Path | None = None
    engine: str = "auto"
    detector: Path | None = None
    objects_guide: str = AUTO
    guide_strength: float | None = None
    threads: int | None = None
    trust: Trust = ACCEPT_ALL

    def load_captioner(self) -> Captioner:
        """Load the captioner; raises what :meth:`Captioner.from_bundle` raises."""
        captioner = Captioner.from_bundle(self.bundle, engine=self.engine, threads=self.threads, detector=self.detector)
        strength = STRENGTH if self.guide_strength is None else self.guide_strength
        return guide_words(captioner, self.objects_guide, strength)

    def absolute(self) -> "ModelSettings":
        """Return the same with absolute paths, for processes with other working directories."""
        named = self.detector is not None and os.fspath(self.detector) != NO_DETECTOR
        return replace(
            self,
            bundle=self.bundle.absolute() if self.bundle is not None else None,
            detector=self.detector.absolute() if self.detector is not None and named else self.detector,
        )


def load_coverage(captioner: Captioner) -> NounCoverage:
    """Load noun coverage for COCO's classes and those of the captioner's detector; raises CoverageError."""
    classes = captioner.detector.class_names if captioner.detector else ()
    return NounCoverage.load(class_names=classes)


class MessageCaptioner:
    """Captions image messages, with nouns and coverage as in the messages of the caption node."""

    def __init__(self, captioner: Captioner, trust: Trust = ACCEPT_ALL) -> None:
        self._captioner = captioner
        self._trust = trust
        self.coverage = load_coverage(captioner)

    def caption(self, stored: StoredMessage, camera: str) -> tuple[bytes | None, str | None, str]:
        """Caption one image message.

        An image that cannot be captioned gets a message with the status ERROR, as in the node. Durations are 0, so that
        an image has the same message in every run.

        Returns:
            The serialised Caption, None if the image message cannot be read; its text, None if it has none; and one
            sentence that says why the image has no caption, empty if it has one.
        """
        try:
            message = read_message(stored)
        except ImageMessageError as error:
            return None, None, str(error)
        try:
            caption = self._captioner.caption(DECODERS[stored.message_type](message))
        except (ImageMessageError, EngineError) as error:
            reason = f"the engine failed on this image: {error}" if isinstance(error, EngineError) else str(error)
            failed = CaptionRecord.without_caption(CaptionStatus.ERROR, reason, camera=camera)
            return _serialised(failed, message.header), None, reason
        grounding = replace(ground_caption(self.coverage, caption), time_s=0.0)
        record = CaptionRecord.of(
            replace(caption, timing=Timing(0.0, 0.0, 0.0, 0.0, caption.timing.steps)),
            grounding,
            has_detector=self._captioner.detector is not None,
            trust=self._trust,
            camera=camera,
        )
        return _serialised(record, message.header), record.caption.text or None, ""


def _serialised(record: CaptionRecord, header: Any) -> bytes:
    return bytes(typestore().serialize_cdr(to_message(message_types(), record, header), CAPTION))
