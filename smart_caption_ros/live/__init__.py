"""Follow captions as they arrive, with or without ROS: feeds of captions and events, and statistics.

`smart-caption watch`, `serve` and `log` read a :class:`CaptionFeed`. :class:`SourceFeed` captions files and webcams in
this process. :class:`smart_caption_ros.nodes.live.RosCaptionFeed` receives the captions of running nodes with a node of
the caller, and :func:`smart_caption_ros.nodes.live.standalone_feed` with a node that it creates::

    with SourceFeed({"kitchen": open_source("0")}, Captioner.from_bundle()) as feed:
        while not feed.ended:
            match feed.next(timeout_s=1.0):
                case CaptionRecord() as record:
                    print(record.camera, record.caption.text)
                case FeedEvent() as event:
                    print(event.camera, event.text)
"""

from smart_caption_ros.live.feed import MAX_CAMERAS, CaptionFeed, EventKind, FeedError, FeedEvent
from smart_caption_ros.live.source_feed import SourceFeed, open_cameras
from smart_caption_ros.live.statistics import CameraSummary, Health, LiveStatistics

__all__ = [
    "MAX_CAMERAS",
    "CameraSummary",
    "CaptionFeed",
    "EventKind",
    "FeedError",
    "FeedEvent",
    "Health",
    "LiveStatistics",
    "SourceFeed",
    "open_cameras",
]
