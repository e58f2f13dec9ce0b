"""Pass captions from a feed to browsers: the newest captions, their pictures, and an outbox for each browser."""

import asyncio
import functools
import itertools
import logging
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import cv2

from smart_caption_ros.caption_log.times import local_time
from smart_caption_ros.imaging import ImageError, decode_image_bytes, shrink_image
from smart_caption_ros.live import MAX_CAMERAS
from smart_caption_ros.mailbox import Mailbox
from smart_caption_ros.record import CaptionRecord
from smart_caption_ros.serving.history import SPAN_S, History, Moment
from smart_caption_ros.serving.page_json import caption_json, event, status_json, to_json
from smart_caption_ros.viewing import draw_overlay, encode_picture

logger = logging.getLogger(__name__)

MAX_PICTURE_PX = 960
"""Longer side of the pictures that the browsers get; larger frames are scaled down."""
KEPT_PICTURES = 3
"""Number of frames of each camera that a browser can request: those of the newest captions."""
KEEP_ALIVE_S = 10.0
"""Time after which a stream without events gets a comment, so that browsers that left are noticed, seconds."""
_JPEG_QUALITY = 80
_MAX_HISTORY = 2400


@dataclass(eq=False)
class _Shown:
    """A caption as the browsers get it; encoded once, when the first of them needs it."""

    number: int
    live: CaptionRecord
    picture: asyncio.Future[bytes | None] | None = None
    """The JPEG of the frame, the same for all browsers; None before the first request."""

    @functools.cached_property
    def json(self) -> dict[str, Any]:
        return caption_json(self.live, self.number, None if self.live.image is None else f"frames/{self.number}.jpg")

    @functools.cached_property
    def event(self) -> bytes:
        return event("caption", self.json)


@dataclass
class _ShownCamera:
    newest: _Shown
    pictures: OrderedDict[int, _Shown] = field(default_factory=OrderedDict)
    history: deque[tuple[float, float | None, float | None]] = field(default_factory=lambda: deque(maxlen=_MAX_HISTORY))
    """Time by :func:`time.monotonic`, coverage and age in milliseconds of the captions of the last two minutes."""


class Outbox:
    """The newest event of each kind for one browser, so that a slow browser gets fewer events and delays nobody.

    All methods are called on the event loop's thread.
    """

    def __init__(self) -> None:
        self.missed: Counter[str] = Counter()
        """Number of events by camera that newer ones replaced before they were taken."""
        self._events: dict[str, bytes] = {}
        self._changed = asyncio.Event()
        self._is_closed = False

    def put(self, key: str, event: bytes) -> bool:
        """Leave an event; return whether it replaces one of the same key that was not taken."""
        replaces = key in self._events
        self._events[key] = event
        self._changed.set()
        return replaces

    def drop(self, key: str) -> None:
        """Remove an event that was not taken."""
        self._events.pop(key, None)

    def close(self) -> None:
        """Let :meth:`take` return None from now on."""
        self._is_closed = True
        self._changed.set()

    async def take(self, timeout_s: float) -> Sequence[bytes] | None:
        """Take all waiting events; empty after a timeout without an event, None after :meth:`close`."""
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except asyncio.TimeoutError:
            return ()
        if self._is_closed:
            return None
        events = list(self._events.values())
        self._events.clear()
        self._changed.clear()
        return events


class Hub:
    """Passes captions from the threads of a feed to the browsers.

    :meth:`publish` and :meth:`update_status` may be called from any thread and never wait for a browser. Everything
    else runs on the thread of the event loop.
    """

    def __init__(self, description: str = "") -> None:
        """``description``: source of the captions, shown on the page."""
        self.pictures_encoded = 0
        self._description = description
        self._inboxes: dict[str, Mailbox[CaptionRecord]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cameras: dict[str, _ShownCamera] = {}
        self._history = History()
        self._keeping: set[asyncio.Task[None]] = set()
        self._status: Mapping[str, Any] = status_json([], [], {})
        self._outboxes: set[Outbox] = set()
        self._numbers = itertools.count(1)
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix="jpeg")

    @property
    def browsers(self) -> int:
        return len(self._outboxes)

    def publish(self, live: CaptionRecord) -> None:
        """Pass a caption on; it replaces one of the same camera that the event loop has not taken yet."""
        inbox = self._inboxes.setdefault(live.camera, Mailbox())
        if inbox.put(live):
            self._call(lambda: self._deliver(inbox))

    def update_status(self, status: Mapping[str, Any]) -> None:
        """Pass on the result of :func:`smart_caption_ros.serving.page_json.status_json`."""
        self._call(lambda: self._deliver_status(status))

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start delivering on this event loop."""
        self._loop = loop
        for inbox in list(self._inboxes.values()):
            self._deliver(inbox)

    def detach(self) -> None:
        """End all streams and deliver no more."""
        self._loop = None
        for outbox in self._outboxes:
            outbox.close()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield server-sent events for one browser, first the present state, until the hub stops.

        While the browser does not read, newer events replace older ones.
        """
        outbox = Outbox()
        self._outboxes.add(outbox)
        try:
            self._send_state(outbox)
            while (events := await outbox.take(KEEP_ALIVE_S)) is not None:
                yield b"".join(events) or b": still here\n\n"
        finally:
            self._outboxes.discard(outbox)

    def _send_state(self, outbox: Outbox) -> None:
        now_s = time.monotonic()
        hello = {
            "description": self._description,
            "now_s": now_s,
            "cameras": sorted(self._cameras),
            "history": {
                name: [(round(at, 2), *values) for at, *values in camera.history if at >= now_s - SPAN_S]
                for name, camera in self._cameras.items()
            },
        }
        outbox.put("hello", event("hello", hello))
        outbox.put("status", event("status", self._status))
        for name, camera in self._cameras.items():
            outbox.put(_key(name), camera.newest.event)

    def captions(self) -> str:
        """Return the newest caption of each camera and the status, as JSON."""
        newest = {name: camera.newest.json for name, camera in sorted(self._cameras.items())}
        return to_json({"captions": newest, "status": self._status})

    async def picture(self, number: int) -> bytes | None:
        """Return the JPEG of the frame of a caption; None if there is none, or if it is not kept any more."""
        kept = await self._kept(number)
        return None if kept is None else kept[1]

    async def drawn(self, number: int) -> bytes | None:
        """Return a JPEG of a kept frame with its caption and boxes; None if it is not kept. Raises ImageError."""
        live, picture = await self._kept(number) or (None, None)
        if live is None or picture is None:
            return None
        return await asyncio.get_running_loop().run_in_executor(self._encoder, drawn_jpeg, live, picture)

    def past(self, camera: str) -> str:
        """Return the kept captions of a camera, oldest first, as JSON: number, age in seconds, text."""
        now_s = time.monotonic()
        moments = [
            {
                "number": moment.number,
                "age_s": round(now_s - moment.live.received_monotonic_s, 1),
                "text": moment.live.caption.text,
            }
            for moment in self._history.of(camera)
        ]
        return to_json({"moments": moments})

    def past_caption(self, number: int) -> str | None:
        """Return a caption as the JSON that the browsers got; None if it is not kept."""
        moment = self._history.get(number)
        if moment is None:
            return None
        return to_json(caption_json(moment.live, number, f"frames/{number}.jpg" if moment.picture else None))

    async def _kept(self, number: int) -> tuple[CaptionRecord, bytes | None] | None:
        """Return a kept caption and the JPEG of its frame."""
        for camera in self._cameras.values():
            if (shown := camera.pictures.get(number)) is not None:
                return shown.live, await self._encoded(shown)
        moment = self._history.get(number)
        return None if moment is None else (moment.live, moment.picture)

    async def _encoded(self, shown: _Shown) -> bytes | None:
        if shown.picture is None:
            self.pictures_encoded += 1
            shown.picture = asyncio.get_running_loop().run_in_executor(self._encoder, _encode, shown.live)
        # Shielded, because a browser that leaves must not cancel what others wait for.
        return await asyncio.shield(shown.picture)

    async def _keep(self, shown: _Shown) -> None:
        """Keep a caption for two minutes; its frame is encoded and kept only while a browser is connected."""
        picture = await self._encoded(shown) if self._outboxes and shown.live.image is not None else None
        self._history.add(Moment(shown.number, replace(shown.live, image=None), picture))

    def _make_room(self) -> None:
        """Drop the camera that has been silent longest, if there are :data:`MAX_CAMERAS`."""
        if len(self._cameras) < MAX_CAMERAS:
            return
        silent = min(self._cameras, key=lambda name: self._cameras[name].newest.live.received_monotonic_s)
        del self._cameras[silent]
        self._inboxes.pop(silent, None)
        self._history.forget(silent)
        for outbox in self._outboxes:
            outbox.drop(_key(silent))
            outbox.missed.pop(silent, None)

    def _call(self, function: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(function)
            except RuntimeError:  # the loop was closed in between
                logger.debug("the server has stopped")

    def _deliver(self, inbox: Mailbox[CaptionRecord]) -> None:
        if (delivery := inbox.take()) is None:
            return
        live, _ = delivery
        shown = _Shown(next(self._numbers), live)
        if live.camera not in self._cameras:
            self._make_room()
        camera = self._cameras.setdefault(live.camera, _ShownCamera(shown))
        camera.newest = shown
        coverage = None if live.grounding is None else live.grounding.coverage
        age_ms = None if live.age_s is None else round(1e3 * live.age_s, 1)
        camera.history.append((live.received_monotonic_s, coverage, age_ms))
        if live.image is not None:
            camera.pictures[shown.number] = shown
            if len(camera.pictures) > KEPT_PICTURES:
                camera.pictures.popitem(last=False)
        if self._loop is not None and self._history.is_due(live):
            task = self._loop.create_task(self._keep(shown))
            self._keeping.add(task)
            task.add_done_callback(self._keeping.discard)
        for outbox in self._outboxes:
            if outbox.put(_key(live.camera), shown.event):
                outbox.missed[live.camera] += 1
                outbox.put("missed", event("missed", outbox.missed))

    def _deliver_status(self, status: Mapping[str, Any]) -> None:
        self._status = status
        for outbox in self._outboxes:
            outbox.put("status", event("status", status))


def _key(camera: str) -> str:
    """Return the slot of a camera; the prefix keeps it apart from the slots "hello", "status" and "missed"."""
    return f"camera {camera}"


def _encode(live: CaptionRecord) -> bytes | None:
    assert live.image is not None
    try:
        if max(live.caption.image_size) <= MAX_PICTURE_PX:
            return live.image.jpeg()
        return encode_picture(shrink_image(live.image.bgr(), MAX_PICTURE_PX), ".jpg", _JPEG_QUALITY)
    except (ImageError, OSError, cv2.error) as error:
        logger.warning("a frame of %s cannot be shown: %s", live.camera, error)
        return None


def drawn_jpeg(live: CaptionRecord, picture: bytes) -> bytes:
    """Draw a caption on the JPEG of its frame, which may have another size; return a JPEG. Raises ImageError."""
    image_bgr = decode_image_bytes(picture)
    caption = live.caption.resized(image_bgr.shape[1], image_bgr.shape[0])
    header = f"{live.camera}  {local_time(round(live.received_s * 1e9))}"
    return encode_picture(draw_overlay(image_bgr, caption, header, live.grounding), ".jpg")
