"""Write the captions of a feed into a log, when their meaning changes."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cv2

from smart_caption_ros.caption_log.errors import CaptionLogError
from smart_caption_ros.caption_log.logged_caption import LoggedCaption, LoggedNoun, LoggedObject, LoggedPose
from smart_caption_ros.caption_log.store import CaptionLog
from smart_caption_ros.captioning import Caption
from smart_caption_ros.captioning.vocabulary import word_starts
from smart_caption_ros.grounding.named_objects import GroundedNoun
from smart_caption_ros.grounding.text_filter import TextFilter
from smart_caption_ros.imaging import ImageError, shrink_image
from smart_caption_ros.live import MAX_CAMERAS, CaptionFeed, FeedEvent
from smart_caption_ros.record import CaptionRecord, CaptionStatus, LazyImage, NounState
from smart_caption_ros.viewing import encode_picture

PICTURE_SIDE_PX, JPEG_QUALITY = 320, 75
QUIET_S = 10.0
"""Time after which a meaning is written again though another one was written meanwhile."""
_LOGGED = (CaptionStatus.OK, CaptionStatus.LOW_CONFIDENCE)
_SUPPORTED = {NounState.SUPPORTED: True, NounState.UNSUPPORTED: False, NounState.UNCHECKED: None}
_WAIT_S = 0.5


class Recorder:
    """Writes captions whose meaning differs from that of the last one of their camera; see :class:`TextFilter`.

    A caption that cannot be written is lost, and the next one is tried. Its numbers may be read from any thread.

    Attributes:
        written: number of captions written.
        unchanged: number of those left out because they say the same as the last one written, or as one that was
            written less than :data:`QUIET_S` before; photographs are compared with the last one written alone.
        without_caption: number of images without a caption: nothing was found in them, or an error occurred.
        dropped: number of images that newer ones replaced before they were captioned.
        failed: number of captions that could not be written.
        problem: why the last one could not be written; empty where it was.
        captions: number of rows in the log.
        used_bytes: bytes of the log that are in use.
    """

    def __init__(
        self,
        log: CaptionLog,
        *,
        robot: str = "",
        picture_side_px: int = PICTURE_SIDE_PX,
        jpeg_quality: int = JPEG_QUALITY,
        on_problem: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """
        Args:
            log: used by one thread at a time, the one that calls :meth:`take`.
            robot: name of the robot; empty takes that of the host.
            picture_side_px: longest side of the pictures; 0 writes none.
            jpeg_quality: 1 to 100.
            on_problem: called with a sentence when writing begins to fail, and when it succeeds again.
        """
        self._log = log
        self._robot = robot or socket.gethostname()
        self._picture_side_px = picture_side_px
        self._jpeg_quality = jpeg_quality
        self._on_problem = on_problem
        self._filters: dict[str, TextFilter] = {}
        self._lost_since = 0
        self.written = self.unchanged = self.without_caption = self.dropped = self.failed = 0
        self.problem = ""
        self.captions, self.used_bytes = log.captions, log.used_bytes

    def take(self, live: CaptionRecord) -> bool:
        """Write a caption if it has a text with a new meaning; return whether it was written."""
        self.dropped += live.dropped
        if live.status not in _LOGGED or not live.caption.text:
            self.without_caption += 1
            return False
        lemmas = [noun.lemma for noun in live.grounding.nouns] if live.grounding is not None else []
        texts = self._filters.pop(live.camera, None) or TextFilter(QUIET_S)
        self._filters[live.camera] = texts  # the last one, for the order of the last captions
        if len(self._filters) > MAX_CAMERAS:
            del self._filters[next(iter(self._filters))]
        is_photograph = bool(live.name) and live.stamp_ns is None  # of no camera that would see the same again
        if not texts.is_new(live.caption.text, lemmas, math.inf if is_photograph else live.received_s):
            self.unchanged += 1
            return False
        if not self._try(lambda: self._log.append(self._row_of(live))):
            texts.forget()
            self.failed += 1
            return False
        self.written += 1
        return True

    def tidy(self) -> None:
        """Delete rows that have become too old; to be called when no caption comes."""
        self._try(self._log.prune)

    def _try(self, action: Callable[[], Any]) -> bool:
        try:
            action()
        except CaptionLogError as error:
            if not self.problem:
                self._lost_since = self.failed
                self._on_problem(f"{error}; captions are lost until it can")
            self.problem = str(error)
            return False
        with suppress(CaptionLogError):  # what was done is done
            self.captions, self.used_bytes = self._log.captions, self._log.used_bytes
        if self.problem:
            self._on_problem(f"the caption log is written again; {self.failed - self._lost_since} captions are lost")
        self.problem = ""
        return True

    def _row_of(self, live: CaptionRecord) -> LoggedCaption:
        caption, grounding = live.caption, live.grounding
        nouns = grounding.nouns if grounding is not None else ()
        return LoggedCaption(
            stamp_ns=live.stamp_ns or 0,
            wall_time_ns=round(live.received_s * 1e9),
            robot=self._robot,
            camera=live.camera,
            text=caption.text,
            frame_id=live.frame_id,
            score=float(caption.score),
            status=live.status.value,
            model=caption.model,
            objects=tuple(
                LoggedObject(item.class_name, float(item.score), (*map(float, item.box_xyxy),))  # type: ignore[arg-type] # four
                for item in caption.objects
            ),
            nouns=tuple(
                LoggedNoun(
                    noun.lemma,
                    _SUPPORTED[live.state_of(noun)],
                    _word_index(caption, noun),
                    len(noun.text.split()),
                    noun.object_index,
                )
                for noun in nouns
            ),
            coverage=grounding.coverage if grounding is not None else None,
            confidence=float(caption.confidence),
            calibrated_confidence=caption.calibrated_confidence,
            image_size=caption.image_size,
            pose=None
            if live.pose is None
            else LoggedPose(live.pose.frame_id, live.pose.position, live.pose.orientation),
            picture=self._picture_of(live.image),
        )

    def _picture_of(self, image: LazyImage | None) -> bytes | None:
        """Return a small JPEG; None where there is no image, or a broken one, which must not cost the caption."""
        if image is None or not self._picture_side_px:
            return None
        try:
            picture_bgr = shrink_image(image.bgr(), self._picture_side_px)
            return encode_picture(picture_bgr, ".jpg", self._jpeg_quality)
        except (ImageError, OSError, cv2.error):
            return None


def _word_index(caption: Caption, noun: GroundedNoun) -> int:
    """Return the index of a noun's first word between the spaces of the text, in which a clitic is no word."""
    starts = word_starts([word.text for word in caption.words], caption.text)
    return caption.text.count(" ", 0, starts[noun.word_index]) if starts else noun.word_index


def record(
    feed: CaptionFeed,
    recorder: Recorder,
    should_stop: Callable[[], bool],
    on_event: Callable[[FeedEvent], None] = lambda event: None,
) -> None:
    """Write the captions of a feed, which was started, until it ends or `should_stop` returns True.

    Raises:
        FeedError: the feed can never give a caption.
    """
    while not (should_stop() or feed.ended):
        item = feed.next(_WAIT_S)
        if isinstance(item, CaptionRecord):
            recorder.take(item)
        elif item is None:
            recorder.tidy()
        else:
            on_event(item)
