"""The feed of the captions that running nodes publish; see :mod:`smart_caption_ros.live`."""

from smart_caption_ros.nodes.live.caption_feed import RosCaptionFeed
from smart_caption_ros.nodes.live.standalone_feed import standalone_feed

__all__ = ["RosCaptionFeed", "standalone_feed"]
