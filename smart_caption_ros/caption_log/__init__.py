"""A memory of what was seen: captions in one SQLite file, written when their meaning changes, and found again.

:class:`CaptionLog` writes, :class:`LogReader` searches; `recording.py` writes the captions of a feed.
"""

from smart_caption_ros.caption_log.errors import CaptionLogError
from smart_caption_ros.caption_log.logged_caption import LoggedCaption, LoggedNoun, LoggedObject, LoggedPose
from smart_caption_ros.caption_log.search import LogReader, Match, Near, Query
from smart_caption_ros.caption_log.store import Bounds, CaptionLog

__all__ = [
    "Bounds",
    "CaptionLog",
    "CaptionLogError",
    "LogReader",
    "LoggedCaption",
    "LoggedNoun",
    "LoggedObject",
    "LoggedPose",
    "Match",
    "Near",
    "Query",
]
