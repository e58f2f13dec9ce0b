"""The caption log: captions in one SQLite file, written when their meaning changes, to be searched later.

:class:`CaptionLog` writes, :class:`LogReader` searches; `recording.py` writes the captions of a feed.
"""

from smart_caption_ros.caption_log.row import LogRow
from smart_caption_ros.caption_log.schema import CaptionLogError
from smart_caption_ros.caption_log.search import Highlights, LogReader, Near, Query
from smart_caption_ros.caption_log.store import Bounds, CaptionLog

__all__ = ["Bounds", "CaptionLog", "CaptionLogError", "Highlights", "LogReader", "LogRow", "Near", "Query"]
