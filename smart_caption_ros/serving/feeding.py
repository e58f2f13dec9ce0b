"""Pass the captions and events of a feed to the browsers."""

import time
from collections.abc import Callable

from smart_caption_ros.live import CaptionFeed, EventKind, FeedEvent
from smart_caption_ros.record import CaptionRecord
from smart_caption_ros.serving.hub import Hub
from smart_caption_ros.serving.page_json import status_json

STATUS_PERIOD_S = 1.0
_WAIT_S = 0.2


def pass_on(feed: CaptionFeed, hub: Hub, is_stopped: Callable[[], bool]) -> None:
    """Pass captions and the state of the cameras to a hub until stopped, also after the feed has ended.

    Args:
        is_stopped: called several times a second.
    """
    notes: dict[str, str] = {}
    due_s = 0.0
    while not is_stopped():
        item = None
        if feed.ended:
            time.sleep(_WAIT_S)
        else:
            item = feed.next(_WAIT_S)
        if isinstance(item, CaptionRecord):
            hub.publish(item)
        elif isinstance(item, FeedEvent) and item.camera is not None and item.kind is not EventKind.DIAGNOSTICS:
            # The newest event of a camera; its return clears the note. Diagnostics are in the statistics.
            notes[item.camera] = "" if item.kind is EventKind.APPEARED else item.text
        if (now_s := time.monotonic()) >= due_s:
            cameras = feed.cameras
            notes = {summary.camera: notes.get(summary.camera, "") for summary in cameras}
            hub.update_status(status_json(cameras, feed.waiting_for, notes, feed.forgotten))
            due_s = now_s + STATUS_PERIOD_S
