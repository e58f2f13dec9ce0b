"""A feed without ROS, which captions files, folders, videos, bags and webcams in this process."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.grounding import NounCoverage
from smart_caption_ros.live.feed import CaptionFeed, EventKind, FeedError, FeedEvent
from smart_caption_ros.mailbox import Mailbox
from smart_caption_ros.record import ACCEPT_ALL, LazyImage, Trust
from smart_caption_ros.sources import Frame, FrameSource, SourceError, open_source
from smart_caption_ros.sources.captioned_frames import caption_frame
from smart_caption_ros.sources.webcam import Webcam

_MAX_PAUSE_S = 10.0
"""Longest pause between two frames of a recording, whatever their stamps say."""
_JOIN_TIMEOUT_S = 5.0


def open_cameras(specs: Sequence[str], topic: str | None = None) -> dict[str, FrameSource]:
    """Open sources, and name a camera after the file or folder of each; equal names get a number."""
    cameras: dict[str, FrameSource] = {}
    for spec in specs:
        source = open_source(spec, topic=topic)
        is_number = isinstance(source, Webcam) and spec.isdecimal()
        plain = name = f"camera{spec}" if is_number else spec.partition(":")[2] or Path(spec).stem or spec
        number = 1
        while name in cameras:
            number += 1
            name = f"{plain} {number}"
        cameras[name] = source
    return cameras


@dataclass(eq=False)
class _SourceCamera:
    """A source and its newest frame, which waits for the captioner."""

    name: str
    source: FrameSource
    mailbox: Mailbox[tuple[Frame, float]] = field(default_factory=Mailbox)
    """A frame, and the time at which it was put there by :func:`time.monotonic`."""
    ending: str = ""
    """Why the source has ended; empty while it is read."""

    @property
    def is_done(self) -> bool:
        return bool(self.ending) and self.mailbox.is_empty


class SourceFeed(CaptionFeed):
    """Captions sources: recordings at the speed of their stamps, photographs one after the other, webcams live.

    Each source is read on its own thread, and one thread captions the newest frame of each in turn. A waiting frame
    with a stamp is dropped and counted when the next one arrives; photographs are never dropped.
    """

    def __init__(
        self,
        cameras: Mapping[str, FrameSource],
        captioner: Captioner,
        coverage: NounCoverage | None = None,
        *,
        interval_s: float = 1.0,
        loop: bool = False,
        trust: Trust = ACCEPT_ALL,
    ) -> None:
        """
        Args:
            captioner: must not be used by other threads until the feed is closed.
            coverage: matches nouns with objects; None does not match them.
            interval_s: time between two photographs, seconds; 0 captions them as fast as possible.
        """
        super().__init__(trust=trust)
        self._cameras = [_SourceCamera(name, source) for name, source in cameras.items()]
        self._captioner = captioner
        self._coverage = coverage
        self._interval_s = interval_s
        self._loop = loop
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> "SourceFeed":
        for camera in self._cameras:
            self.add_camera(camera.name, camera.source.spec, camera.source.description)
            self._threads.append(threading.Thread(target=self._read, args=(camera,), name="frames", daemon=True))
        self._threads.append(threading.Thread(target=self._caption_all, name="captions", daemon=True))
        for thread in self._threads:
            thread.start()
        return self

    @property
    def description(self) -> str:
        return ", ".join(camera.source.description for camera in self._cameras)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        if self.has_captions:
            return ()
        return tuple(f"the first frame of {camera.source.description}" for camera in self._cameras)

    def close(self, text: str = "", failure: FeedError | None = None) -> None:
        super().close(text, failure)
        end_s = time.monotonic() + _JOIN_TIMEOUT_S
        for thread in self._threads:
            # The threads are daemons, because a webcam in the dark may take seconds for a frame.
            thread.join(max(0.0, end_s - time.monotonic()))

    def _read(self, camera: _SourceCamera) -> None:
        text = f"{camera.source.spec} has ended"
        try:
            self._read_passes(camera)
        except SourceError as error:
            text = str(error)
            self.add_event(FeedEvent(EventKind.ERROR, text, camera.name))
        except Exception as error:  # from OpenCV or a library for bags; the other cameras go on
            text = f"reading {camera.source.spec} failed: {type(error).__name__}: {error}"
            self.add_event(FeedEvent(EventKind.ERROR, text, camera.name))
        finally:
            with self._changed:
                camera.ending = text
                self._changed.notify_all()

    def _read_passes(self, camera: _SourceCamera) -> None:
        while True:
            anchor: tuple[float, float] | None = None  # stamp and monotonic time that later frames are timed by
            for frame in camera.source:
                self._report_skipped(camera)
                if frame.stamp_ns is None:
                    if not self._offer_photograph(camera, frame):
                        return
                    continue
                stamp_s, now_s = frame.stamp_ns * 1e-9, time.monotonic()
                if anchor is None or not 0 <= anchor[1] + stamp_s - anchor[0] - now_s <= _MAX_PAUSE_S:
                    # The first frame, a gap between stamps, a stamp before the last one, or a late frame.
                    anchor = (stamp_s, now_s)
                if not self._offer(camera, frame, anchor[1] + stamp_s - anchor[0]):
                    return
            self._report_skipped(camera)
            if not self._loop:
                return

    def _report_skipped(self, camera: _SourceCamera) -> None:
        for skipped in camera.source.newly_skipped():
            text = f"cannot read {camera.source.address_of(skipped)}: {skipped.reason}"
            self.add_event(FeedEvent(EventKind.ERROR, text, camera.name))

    def _offer(self, camera: _SourceCamera, frame: Frame, due_s: float) -> bool:
        """Put a frame into the mailbox when it is due; return False if the feed is closed before."""
        with self._changed:
            if self._changed.wait_for(lambda: self._is_closed, max(0.0, due_s - time.monotonic())):
                return False
            self._deliver(camera, frame)
            return True

    def _offer_photograph(self, camera: _SourceCamera, frame: Frame) -> bool:
        """Put a photograph into the mailbox when it is empty, and wait until it was shown for the interval."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or camera.mailbox.is_empty)
            if self._is_closed:
                return False
            self._deliver(camera, frame)
            self._changed.wait_for(lambda: self._is_closed or camera.mailbox.is_empty)
            return not self._changed.wait_for(lambda: self._is_closed, self._interval_s)

    def _deliver(self, camera: _SourceCamera, frame: Frame) -> None:
        camera.mailbox.put((frame, time.monotonic()))
        self._changed.notify_all()

    def _caption_all(self) -> None:
        """Caption the waiting frames, one camera after the other, until all sources have ended."""
        turn = 0
        reading = list(self._cameras)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._ready() or any(c.is_done for c in reading))
                for camera in [camera for camera in reading if camera.is_done]:
                    reading.remove(camera)
                    self.remove_camera(camera.name, camera.ending)
                ready = self._ready(turn)
                if self._is_closed or not (ready or reading):
                    break
                delivery = None if ready is None else ready.mailbox.take()
                if ready is None or delivery is None:
                    continue
                turn = self._cameras.index(ready) + 1
                (frame, since_s), dropped = delivery
                self._changed.notify_all()
            record = caption_frame(
                self._captioner,
                ready.source,
                frame,
                self._coverage,
                camera=ready.name,
                name=frame.name,
                image=LazyImage.of_pixels(frame.image_bgr),
                age_at_start_s=time.monotonic() - since_s,
                dropped=dropped,
            )
            self.add(record)
        super().close("every source has ended")

    def _ready(self, turn: int = 0) -> _SourceCamera | None:
        """Return the first camera, beginning with number `turn`, that has a waiting frame; None if there is none."""
        order = self._cameras[turn:] + self._cameras[:turn]
        return next((camera for camera in order if not camera.mailbox.is_empty), None)
