"""Write the captions of a feed into a log when their meaning changes."""

import math
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import cv2

from smart_caption_ros.caption_log.schema import CaptionLogError
from smart_caption_ros.caption_log.store import CaptionLog
from smart_caption_ros.grounding.text_filter import TextFilter
from smart_caption_ros.imaging import ImageError, shrink_image
from smart_caption_ros.live import MAX_CAMERAS, CaptionFeed, FeedEvent
from smart_caption_ros.record import CaptionRecord, CaptionStatus, LazyImage
from smart_caption_ros.text import counted
from smart_caption_ros.viewing import encode_picture

PICTURE_SIDE_PX = 320
QUIET_S = 10.0
"""Minimum time before the same meaning is written again, seconds."""
_LOGGED = (CaptionStatus.OK, CaptionStatus.LOW_CONFIDENCE)
_WAIT_S = 0.5
_JPEG_QUALITY = 75


class Recorder:
    """Writes captions whose meaning differs from that of the last one of their camera; see :class:`TextFilter`.

    A caption that cannot be written is lost; later captions are still tried. The numbers may be read from any thread.

    Attributes:
        unchanged: number of captions that were not written because they say the same as the last one written, or as one
            written less than :data:`QUIET_S` before. Photographs are compared with the last one written alone.
        without_caption: number of images without a caption: nothing was found in them, or an error occurred.
        problem: why the last caption could not be written or old rows not be deleted; empty if that succeeded.
        note: sentence that says that the log's file was deleted or moved while it was written; empty if it was not.
    """

    def __init__(
        self,
        log: CaptionLog,
        *,
        robot: str = "",
        picture_side_px: int = PICTURE_SIDE_PX,
        on_problem: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """
        Args:
            log: used by one thread at a time, the one that calls :meth:`take`.
            robot: name of the robot; empty takes that of the host.
            picture_side_px: longest side of the pictures; 0 writes none.
            on_problem: called with a sentence when writing begins to fail, and when it succeeds again.
        """
        self._log = log
        self._robot = robot or socket.gethostname()
        self._picture_side_px = picture_side_px
        self._on_problem = on_problem
        self._filters: dict[str, TextFilter] = {}
        self._failed_before = self._new_files = 0
        self.written = self.unchanged = self.without_caption = self.dropped = self.failed = 0
        self.problem = self.note = ""
        self.captions, self.used_bytes = log.captions, log.used_bytes

    def take(self, record: CaptionRecord) -> bool:
        """Write a caption if it has a text with a new meaning; return whether it was written."""
        self.dropped += record.dropped
        text = record.caption.text
        if record.status not in _LOGGED or not text:
            self.without_caption += 1
            return False
        lemmas = [noun.lemma for noun in record.grounding.nouns] if record.grounding is not None else []
        texts = self._filters.pop(record.camera, None) or TextFilter(QUIET_S)
        self._filters[record.camera] = texts  # moved to the end: the first camera has been silent longest
        if len(self._filters) > MAX_CAMERAS:
            del self._filters[next(iter(self._filters))]
        is_photograph = bool(record.name) and record.stamp_ns is None  # of no camera that would see the same again
        if not texts.is_new(text, lemmas, math.inf if is_photograph else record.received_s):
            self.unchanged += 1
            return False
        try:
            self._log.append(replace(record, robot=self._robot), self._picture_of(record.image))
        except CaptionLogError as error:
            self._begin_problem(error)
            texts.forget()
            self.failed += 1
            return False
        self.written += 1
        self._end_problem()
        return True

    def tidy(self) -> None:
        """Delete rows that have become too old; to be called when no caption comes.

        Success does not end a problem for which a caption was lost; that takes a caption that is written.
        """
        try:
            self._log.prune()
        except CaptionLogError as error:
            self._begin_problem(error)
        else:
            if self.failed == self._failed_before:
                self._end_problem()

    def _begin_problem(self, error: CaptionLogError) -> None:
        if not self.problem:
            self._failed_before = self.failed
            self._on_problem(f"{error}; captions are lost until it can")
        self.problem = str(error)

    def _end_problem(self) -> None:
        with suppress(CaptionLogError):  # the write itself has succeeded
            self.captions, self.used_bytes = self._log.captions, self._log.used_bytes
        if self.problem:
            lost = counted(self.failed - self._failed_before, "caption")
            self._on_problem(f"the caption log is written again; {lost} lost")
        self.problem, self._failed_before = "", self.failed
        if self._log.new_files != self._new_files:
            self._new_files = self._log.new_files
            self.note = f"{self._log.path} was deleted or moved while it was written: captions go into a new file"
            self._on_problem(self.note)

    def _picture_of(self, image: LazyImage | None) -> bytes | None:
        """Return a small JPEG; None without an image, or with a broken one, whose caption is written nevertheless."""
        if image is None or not self._picture_side_px:
            return None
        try:
            picture_bgr = shrink_image(image.bgr(), self._picture_side_px)
            return encode_picture(picture_bgr, ".jpg", _JPEG_QUALITY)
        except (ImageError, OSError, cv2.error):
            return None


def record(
    feed: CaptionFeed,
    recorder: Recorder,
    should_stop: Callable[[], bool],
    on_event: Callable[[FeedEvent], None] = lambda event: None,
) -> None:
    """Write the captions of a feed that was started, until it ends or `should_stop` returns True.

    Raises FeedError if the feed cannot give captions.
    """
    while not (should_stop() or feed.ended):
        item = feed.next(_WAIT_S)
        if isinstance(item, CaptionRecord):
            recorder.take(item)
        elif item is None:
            recorder.tidy()
        else:
            on_event(item)
